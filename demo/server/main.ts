import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { createModelServer } from './http.js';
import { type Loaded, loadModel, ModelDirError } from './load.js';

const USAGE =
  'usage: main.js --model DIR [--host 127.0.0.1] --port N [--served-model-name NAME] [--allow-drills]';

interface Options {
  readonly model: string;
  readonly host: string;
  readonly port: number;
  readonly name: string;
  readonly drills: boolean;
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    strict: true,
    options: {
      model: { type: 'string' },
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string' },
      'served-model-name': { type: 'string' },
      'allow-drills': { type: 'boolean', default: false },
    },
  });
  if (values.model === undefined) throw new Error('--model is missing');
  if (values.port === undefined) throw new Error('--port is missing');
  const port = Number(values.port);
  if (!/^\d{1,5}$/.test(values.port) || port > 65535) throw new Error(`--port ${values.port} isn't a port`);
  return {
    model: values.model,
    host: values.host,
    port,
    name: values['served-model-name'] ?? values.model,
    drills: values['allow-drills'],
  };
}

/** One line on stderr and the exit status. */
function fail(message: string, status: number): never {
  process.stderr.write(`${message}\n`);
  process.exit(status);
}

function optionsOrExit(): Options {
  try {
    return readOptions(process.argv.slice(2));
  } catch (cause) {
    return fail(`${cause instanceof Error ? cause.message : String(cause)}\n${USAGE}`, 2);
  }
}

function modelOrExit(dir: string): Loaded {
  try {
    return loadModel(dir);
  } catch (cause) {
    if (cause instanceof ModelDirError) return fail(cause.message, 2);
    throw cause;
  }
}

function serve(options: Options, loaded: Loaded): void {
  const { server, startDrill } = createModelServer({ name: options.name, root: options.model, loaded });
  // Without a listener SIGUSR2 would end the process.
  process.on('SIGUSR2', options.drills ? startDrill : () => undefined);

  let closing = false;
  const stop = (): void => {
    if (closing) return;
    closing = true;
    // Also closes idle connections; requests in progress are answered first.
    server.close(() => process.exit(0));
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);

  server.on('error', (cause: NodeJS.ErrnoException) => {
    fail(`can't listen on ${options.host}:${options.port}: ${cause.code ?? cause.message}`, 1);
  });
  server.listen(options.port, options.host, () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`serving ${options.name} on http://${options.host}:${port}\n`);
  });
}

const options = optionsOrExit();
serve(options, modelOrExit(options.model));
