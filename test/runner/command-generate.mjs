// A generate command that misbehaves on demand: the first word of the prompt says how.
