/** Small chat templates of the three kinds (B1): what they do when the reasoning flag is not sent. */
const TURN = "{%- for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>\\n' }}{%- endfor %}";
const BEGIN = "{%- if add_generation_prompt %}{{- '<|assistant|>\\n' }}";

/** Reasons only when it is told to. */
export const CLOSES = `${TURN}
${BEGIN}
{%- if enable_thinking is defined and enable_thinking is true %}{{- '<think>\\n' }}
{%- else %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}
`;

/** Reasons unless it is told not to. */
export const OPENS = `${TURN}
${BEGIN}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}
{%- else %}{{- '<think>\\n' }}{%- endif %}{%- endif %}
`;

/** Leaves the choice to the model unless the flag is false. */
export const LEAVES = `${TURN}
${BEGIN}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
`;

/** Never looks at the flag. */
export const IGNORES = `${TURN}\n${BEGIN}{%- endif %}\n`;

/** Knows no answer without reasoning. */
export const RAISES = `{%- if enable_thinking is defined and enable_thinking is false %}
{{- raise_exception('this model always reasons') }}{%- endif %}
${OPENS}`;
