/** Version of this tool, as manifests and ledgers record it. A test holds it equal to package.json. */
export const VERSION = '0.1.0';
