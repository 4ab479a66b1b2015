"""Calls functions of verify/boundbook_verify.py for the tests: a JSON list of [function, arguments] on standard
input, a JSON list of {"value": …} or {"refused": …} on standard output. Bytes travel as {"hex": …}."""

import contextlib
import io
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "verify"))
sys.dont_write_bytecode = True

import boundbook_verify as verifier  # noqa: E402


def open_note(data, keys):
    """Text of a note and, for each signature that belongs to one of the keys, whether it verifies."""
    note = verifier.parse_note(data)
    known = [verifier.VerifierKey(key) for key in keys]
    verdicts = []
    for name, key_id, signature in note.signatures:
        for key in known:
            if name == key.name and key_id == verifier.note_key_id(key.name, key.blob):
                verdicts.append(verifier.verify_ed25519(key.public_key, note.text.encode("utf-8"), signature))
    return {"text": note.text, "names": [signature[0] for signature in note.signatures], "verified": verdicts}


def read_checkpoint(text):
    checkpoint = verifier.parse_checkpoint(text)
    return {"origin": checkpoint.origin, "size": checkpoint.size, "root": checkpoint.root.hex()}


def roots_of(leaves):
    """The root of each prefix of the list, from the empty one on, as hexadecimal digits."""
    tree = verifier.Tree()
    roots = [tree.root().hex()]
    for leaf in leaves:
        tree.append(verifier.leaf_hash(leaf))
        roots.append(tree.root().hex())
    return roots


def canonical_double(bits):
    """Canonical text of the double with these 64 bits (hexadecimal digits)."""
    import struct

    return verifier.canonical_text(struct.unpack(">d", bytes.fromhex(bits))[0])


def find_pattern(source, subjects):
    """Whether a pattern of a rule is found in each of the texts; None when it is beyond the common part."""
    try:
        pattern = verifier.Pattern(source)
    except verifier.Unsupported:
        return None
    return [pattern.found_in(subject) for subject in subjects]


def verify(*arguments):
    """Exit status and document of a run on a bundle; a fault of the program fails the test that asked for it."""
    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said):
        status = verifier.main([*arguments, "--json"], out)
    return {"status": status, "said": said.getvalue(), "document": json.loads(out.getvalue() or "null")}


def read_stream(body, endpoint, model, loop_stop, settings):
    """What a kept stream comes to."""
    found = verifier.StreamedAnswer(body, endpoint, model, loop_stop, settings)
    rest = {"firstToken": found.first_token, "stoppedAt": found.stopped_at}
    if found.cause is not None:
        error = found.error or (None, None)
        if found.cause != "body_error" or found.error_word is not None:
            error = (None, found.error_word)
        return {"cause": found.cause, "error": list(error), **rest}
    counts = {"prompt_tokens": found.prompt_tokens, "completion_tokens": found.completion_tokens}
    return {
        "cause": None,
        "candidate": verifier.digest_of(verifier.to_utf8(found.text)),
        "finish": found.finish_reason,
        "usage": None if set(counts.values()) == {None} else counts,
        **rest,
    }


FUNCTIONS = {
    "read_stream": read_stream,
    "verify": verify,
    "find_pattern": find_pattern,
    "open_note": open_note,
    "read_checkpoint": read_checkpoint,
    "roots_of": roots_of,
    "canonical_double": canonical_double,
    "recode": lambda data: verifier.canonical_json(verifier.parse_json(data)),
    "parse_canonical": verifier.parse_canonical,
    "verify_ed25519": verifier.verify_ed25519,
}


def decode(value):
    if isinstance(value, dict) and set(value) == {"hex"}:
        return bytes.fromhex(value["hex"])
    if isinstance(value, list):
        return [decode(item) for item in value]
    return value


def answer(function, arguments):
    try:
        value = FUNCTIONS[function](*[decode(item) for item in arguments])
    except verifier.Refusal as refusal:
        return {"refused": str(refusal)}
    return {"value": {"hex": value.hex()} if isinstance(value, bytes) else value}


json.dump([answer(function, arguments) for function, arguments in json.load(sys.stdin)], sys.stdout)
