#!/usr/bin/env python3
"""A second verifier of Boundbook bundles.

It was written from docs/formats.md alone and shares no code with Boundbook: what both find is found twice.
One file, standard library, Python 3.9 or later.

    python3 boundbook_verify.py BUNDLE [--key VKEY]... [--json]

BUNDLE is a folder or a tar of it. Exit status: 0 nothing found, 4 findings, 2 wrong usage or no bundle,
1 a fault of this program.
"""

import array
import base64
import binascii
import datetime
import hashlib
import json
import math
import os
import re
import stat
import sys
import unicodedata

if sys.version_info < (3, 9):
    sys.exit("boundbook_verify needs Python 3.9 or later")


# ---------------------------------------------------------------------------------------------------------------
# Refusals
# ---------------------------------------------------------------------------------------------------------------


class Refusal(Exception):
    """Hostile or damaged input: why one part of it is not accepted."""


# ---------------------------------------------------------------------------------------------------------------
# Strict JSON (docs/formats/json.md)
# ---------------------------------------------------------------------------------------------------------------

MAX_DEPTH = 200
MAX_SAFE_INTEGER = 2**53 - 1


def quote(text, limit=80):
    """A short, printable form of a hostile text."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return json.dumps(shown, ensure_ascii=True)


def _read_object(pairs):
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Refusal("a key stands twice in one object")
    if "__proto__" in value:
        raise Refusal("the key __proto__")
    return value


def _read_integer(text):
    if len(text) > 17 or not text.isascii() or abs(int(text)) > MAX_SAFE_INTEGER:
        raise Refusal("the integer %s is not exact in a double" % quote(text))
    return int(text)


def _read_fraction(text):
    """A number with a point or an exponent; a whole one is the integer, as 1.0 is 1."""
    value = float(text) if text.isascii() else math.inf
    if not math.isfinite(value):
        raise Refusal("the number %s is no finite double" % quote(text))
    return int(value) if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER else value


def _read_constant(text):
    raise Refusal("%s is no JSON" % text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_read_object,
    parse_int=_read_integer,
    parse_float=_read_fraction,
    parse_constant=_read_constant,
)


def _check_depth(value):
    level, depth = [value], 0
    while level:
        containers = [item for item in level if isinstance(item, (dict, list))]
        depth += 1 if containers else 0
        if depth > MAX_DEPTH:
            raise Refusal("nested deeper than %d levels" % MAX_DEPTH)
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]


def parse_json(data):
    """Bytes of one JSON document to a value; refuses whatever two readers could understand differently.

    A string may hold lone surrogates. Whole numbers within the exact range become int, all others float."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal("not UTF-8 at byte %d" % error.start) from None
    if text.startswith("\ufeff"):
        raise Refusal("a byte-order mark")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Refusal("not JSON: %s at character %d" % (error.msg, error.pos)) from None
    except RecursionError:
        raise Refusal("nested deeper than %d levels" % MAX_DEPTH) from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value)
    return value


def to_utf8(text):
    """UTF-8 of a text; each lone surrogate becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


def has_lone_surrogate(text):
    return any("\ud800" <= c <= "\udfff" for c in text)


# ---------------------------------------------------------------------------------------------------------------
# Canonical JSON (RFC 8785)
# ---------------------------------------------------------------------------------------------------------------


def format_number(value):
    """A finite number as ECMAScript's Number::toString prints it."""
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise Refusal("an integer that is not exact in a double has no canonical form")
        return str(value)
    if value - value != 0:
        raise Refusal("a number that is not finite has no canonical form")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, point = _shortest_digits(abs(value))
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    exponent = "%s%d" % ("+" if point > 0 else "-", abs(point - 1))
    mantissa = digits if count == 1 else digits[0] + "." + digits[1:]
    return sign + mantissa + "e" + exponent


def _shortest_digits(value):
    """The digits d1…dk and the n of ECMAScript: value = 0.d1…dk × 10^n. Python's repr gives the shortest digits too."""
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or "0")
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    return stripped.rstrip("0"), point


def _utf16_order(key):
    return key.encode("utf-16-be")


def canonical_text(value):
    """The canonical JSON of a value, as text."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return json.encoder.encode_basestring(value)
    if isinstance(value, (int, float)):
        return format_number(value)
    if isinstance(value, list):
        return "[" + ",".join([canonical_text(item) for item in value]) + "]"
    members = ["%s:%s" % (json.encoder.encode_basestring(key), canonical_text(value[key])) for key in sorted(value, key=_utf16_order)]
    return "{" + ",".join(members) + "}"


def canonical_json(value):
    """The canonical JSON of a value, as bytes."""
    try:
        return canonical_text(value).encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal("a lone surrogate has no canonical form") from None


def parse_canonical(data):
    """Parses bytes that have to be the canonical JSON of their value."""
    value = parse_json(data)
    if _plain_json(value, data) != data and canonical_json(value) != data:
        raise Refusal("not the canonical JSON of its value")
    return value


_SIGNED_EXPONENT = re.compile(rb"[0-9]e[+-]")


def _plain_json(value, data):
    """What Python's own writer makes of a value read from data, where it is sure to agree with RFC 8785: in ASCII
    text keys sort alike, and doubles print alike unless Python takes an exponent. It is far faster."""
    if not data.isascii() or _SIGNED_EXPONENT.search(data):
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode("utf-8", "replace")


# ---------------------------------------------------------------------------------------------------------------
# Digests
# ---------------------------------------------------------------------------------------------------------------


def sha256(data):
    return hashlib.sha256(data).digest()


def sha256_hex(data):
    return hashlib.sha256(data).hexdigest()


def digest_of(data):
    """A digest as it is written: sha256: and 64 hexadecimal digits."""
    return "sha256:" + sha256_hex(data)


def is_hex(text, length):
    """Whether a value is a text of exactly so many lower-case hexadecimal digits."""
    return isinstance(text, str) and len(text) == length and all(c in "0123456789abcdef" for c in text)


def is_digest(value):
    return isinstance(value, str) and value.startswith("sha256:") and is_hex(value[7:], 64)


# ---------------------------------------------------------------------------------------------------------------
# RFC 6962 trees
# ---------------------------------------------------------------------------------------------------------------

EMPTY_ROOT = sha256(b"")


def leaf_hash(data):
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """A tree that grows leaf by leaf and keeps one hash for each set bit of its size."""

    def __init__(self):
        self.size = 0
        self._peaks = []

    def append(self, leaf):
        """Adds a leaf hash of 32 bytes."""
        size = self.size
        while size & 1:
            leaf = node_hash(self._peaks.pop(), leaf)
            size >>= 1
        self._peaks.append(leaf)
        self.size += 1

    def root(self):
        if not self._peaks:
            return EMPTY_ROOT
        root = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            root = node_hash(peak, root)
        return root


# ---------------------------------------------------------------------------------------------------------------
# Ed25519 verification (RFC 8032, section 5.1.7, without the cofactor)
# ---------------------------------------------------------------------------------------------------------------

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_SQRT_MINUS_ONE = pow(2, (_P - 1) // 4, _P)
_NEUTRAL = (0, 1, 1, 0)


def _add_points(a, b):
    """Sum of two points in extended homogeneous coordinates (X, Y, Z, T)."""
    e = (a[1] - a[0]) * (b[1] - b[0]) % _P
    f = (a[1] + a[0]) * (b[1] + b[0]) % _P
    g = 2 * a[3] * b[3] * _D % _P
    h = 2 * a[2] * b[2] % _P
    x, y, z, w = f - e, h - g, h + g, f + e
    return (x * y % _P, z * w % _P, y * z % _P, x * w % _P)


def _multiply_point(scalar, point):
    result = _NEUTRAL
    while scalar > 0:
        if scalar & 1:
            result = _add_points(result, point)
        point = _add_points(point, point)
        scalar >>= 1
    return result


def _decode_point(data):
    """A point from its 32 bytes, or None when they are not the canonical encoding of a point."""
    value = int.from_bytes(data, "little")
    sign, y = value >> 255, value & (2**255 - 1)
    if y >= _P:
        return None
    x_squared = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(x_squared, (_P + 3) // 8, _P)
    if (x * x - x_squared) % _P != 0:
        x = x * _SQRT_MINUS_ONE % _P
    if (x * x - x_squared) % _P != 0:
        return None
    if x == 0 and sign:
        return None
    if x & 1 != sign:
        x = _P - x
    return (x, y, 1, x * y % _P)


def _encode_point(point):
    inverse = pow(point[2], _P - 2, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


_BASE = _decode_point((4 * pow(5, _P - 2, _P) % _P).to_bytes(32, "little"))


def verify_ed25519(public_key, message, signature):
    """Whether 64 bytes are a signature of the message by the key; both scalars and points have to be canonical."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    key = _decode_point(public_key)
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or scalar >= _L:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % _L
    negative_key = (_P - key[0], key[1], 1, _P - key[3])
    expected = _add_points(_multiply_point(scalar, _BASE), _multiply_point(challenge, negative_key))
    return _encode_point(expected) == signature[:32]


# ---------------------------------------------------------------------------------------------------------------
# Signed notes and checkpoints (C2SP signed-note, tlog-checkpoint)
# ---------------------------------------------------------------------------------------------------------------

ED25519_TYPE = 1
MAX_NOTE_SIZE = 1_000_000
MAX_SIGNATURES = 100


def _decode_base64(text):
    """Standard base64 with padding in its only canonical form."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise Refusal("%s is no base64" % quote(text)) from None
    if base64.b64encode(data).decode("ascii") != text:
        raise Refusal("%s is no canonical base64" % quote(text))
    return data


def _check_key_name(name):
    """C2SP: not empty, no Unicode space, no plus sign."""
    if not name or "+" in name or any(c.isspace() or unicodedata.category(c) == "Zs" for c in name):
        raise Refusal("%s is no key name" % quote(name))


class VerifierKey:
    """A key from its text `<name>+<8 hex>+<base64 of type and key>`."""

    def __init__(self, text):
        parts = text.split("+", 2)
        if len(parts) != 3:
            raise Refusal("a verifier key is <name>+<id>+<key>")
        name, key_id, encoded = parts
        _check_key_name(name)
        blob = _decode_base64(encoded)
        if len(blob) != 33 or blob[0] != ED25519_TYPE:
            raise Refusal("not an Ed25519 verifier key")
        if not is_hex(key_id, 8) or bytes.fromhex(key_id) != note_key_id(name, blob):
            raise Refusal("the id of the verifier key does not belong to its name and key")
        self.name = name
        self.blob = blob
        self.public_key = blob[1:]


def note_key_id(name, blob):
    """The four bytes that announce a key in a note: of its name, its type and its public key."""
    return sha256(name.encode("utf-8") + b"\n" + blob)[:4]


class Note:
    """A signed note: its text (with the final line feed) and its signatures as (name, key id, signature bytes)."""

    def __init__(self, text, signatures):
        self.text = text
        self.signatures = signatures


def parse_note(data):
    """Reads a signed note; the split is at the last empty line, as C2SP says."""
    if len(data) > MAX_NOTE_SIZE:
        raise Refusal("larger than %d bytes" % MAX_NOTE_SIZE)
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal("not UTF-8 at byte %d" % error.start) from None
    if any(c != "\n" and (c < " " or c == "\x7f" or "\x80" <= c <= "\x9f") for c in whole):
        raise Refusal("a control character")
    split = whole.rfind("\n\n")
    if split < 0 or not whole.endswith("\n") or split + 2 == len(whole):
        raise Refusal("no signatures after an empty line")
    lines = whole[split + 2 : -1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise Refusal("more than %d signatures" % MAX_SIGNATURES)
    return Note(whole[: split + 1], [_parse_signature_line(line) for line in lines])


def _parse_signature_line(line):
    if not line.startswith("— "):
        raise Refusal("%s is no signature line" % quote(line))
    name, separator, encoded = line[2:].partition(" ")
    if not separator:
        raise Refusal("%s is no signature line" % quote(line))
    _check_key_name(name)
    blob = _decode_base64(encoded)
    if len(blob) < 5:
        raise Refusal("a signature without content")
    return (name, blob[:4], blob[4:])


class Checkpoint:
    """The text of a checkpoint: origin, tree size, root (32 bytes)."""

    def __init__(self, origin, size, root):
        self.origin = origin
        self.size = size
        self.root = root


def parse_checkpoint(text):
    """Reads a checkpoint without extension lines, and accepts only what it would write itself."""
    lines = text.split("\n")
    if len(lines) != 4 or lines[3] != "" or not lines[0]:
        raise Refusal("a checkpoint has three lines: origin, size, root")
    origin, size_text, root_text = lines[:3]
    if not (size_text.isascii() and size_text.isdigit()) or len(size_text) > 16 or str(int(size_text)) != size_text:
        raise Refusal("%s is no tree size" % quote(size_text))
    root = _decode_base64(root_text)
    if len(root) != 32:
        raise Refusal("the root has %d bytes, not 32" % len(root))
    return Checkpoint(origin, int(size_text), root)


# ---------------------------------------------------------------------------------------------------------------
# Slots
# ---------------------------------------------------------------------------------------------------------------


def slot_id(slot):
    """Identity of a slot tuple [queue, arm, training seed, evaluation seed, task, rep]."""
    return sha256_hex(canonical_json(slot))[:32]


def sampling_seed(namespace, bits, slot):
    """The seed that every model and every replacement meets at this index."""
    queue, _, _, evaluation_seed, task, rep = slot
    digest = sha256(canonical_json([namespace, queue, evaluation_seed, task, rep]))
    return int.from_bytes(digest, "big") >> (256 - bits)


def order_key(namespace, slot):
    """What orders slots (by id) inside a group."""
    return sha256_hex(canonical_json(["order", namespace, slot]))


def shard_of(slot, count):
    return int(slot[:16], 16) % count


def attempt_id(slot, number):
    """Identity of a slot's attempt; the first one has the number 1."""
    return sha256_hex(canonical_json(["attempt", slot, number]))[:32]


# ---------------------------------------------------------------------------------------------------------------
# Trees of files
# ---------------------------------------------------------------------------------------------------------------


def tree_digest(files):
    """Digest of a tree from its (path, hexadecimal digest) pairs."""
    ordered = sorted(files, key=lambda item: item[0].encode("utf-8"))
    return digest_of("".join("%s  %s\n" % (digest, path) for path, digest in ordered).encode("utf-8"))


def oms_root(files):
    """Root of OpenSSF model signing over the same pairs; it does not bind names."""
    ordered = sorted(files, key=lambda item: item[0].encode("utf-8"))
    return digest_of(b"".join(bytes.fromhex(digest) for _, digest in ordered))


# ---------------------------------------------------------------------------------------------------------------
# Forms: a check takes a value and gives None, or where and what is wrong as "/member/0: not a text"
# ---------------------------------------------------------------------------------------------------------------


def text(low=0, high=None, pattern=None):
    """A string of low to high code points, wholly matched by the pattern."""
    compiled = re.compile(pattern) if pattern else None

    def check(value):
        if type(value) is not str:
            return ": not a text"
        if len(value) < low or (high is not None and len(value) > high):
            return ": a text of %d characters" % len(value)
        if compiled and not compiled.fullmatch(value):
            return ": %s has not the form %s" % (quote(value), pattern)
        return None

    return check


def integer(low=-MAX_SAFE_INTEGER, high=MAX_SAFE_INTEGER):
    def check(value):
        if type(value) is not int:
            return ": not an integer"
        return None if low <= value <= high else ": %d is not in the range" % value

    return check


def number(low=-math.inf, high=math.inf, above=-math.inf, below=math.inf):
    def check(value):
        if type(value) is not int and type(value) is not float:
            return ": not a number"
        return None if low <= value <= high and above < value < below else ": %r is not in the range" % value

    return check


def boolean(value):
    return None if type(value) is bool else ": neither true nor false"


def one_of(*values):
    def check(value):
        return None if any(type(value) is type(known) and value == known for known in values) else ": not one of the known values"

    return check


def nullable(check):
    return lambda value: None if value is None else check(value)


def either(*checks):
    """What passes one of several checks."""

    def check(value):
        problems = [one(value) for one in checks]
        return None if None in problems else problems[0]

    return check


def list_of(check, low=0, high=None):
    def check_list(value):
        if type(value) is not list:
            return ": not a list"
        if len(value) < low or (high is not None and len(value) > high):
            return ": a list of %d" % len(value)
        for position, item in enumerate(value):
            problem = check(item)
            if problem:
                return "/%d%s" % (position, problem)
        return None

    return check_list


def one_or_more(check):
    """One value or a list of at least one."""
    many = list_of(check, 1)
    return lambda value: many(value) if type(value) is list else check(value)


def map_of(check, key=None):
    def check_map(value):
        if type(value) is not dict:
            return ": not an object"
        for name, item in value.items():
            problem = (key(name) if key else None) or check(item)
            if problem:
                return "/%s%s" % (quote(name), problem)
        return None

    return check_map


def members(required, optional=None):
    """An object with these members and no others."""
    optional = optional or {}
    every = {**required, **optional}

    def check(value):
        if type(value) is not dict:
            return ": not an object"
        for name, item in value.items():
            member = every.get(name)
            if member is None:
                return ": a surplus member %s" % quote(name)
            problem = member(item)
            if problem:
                return "/%s%s" % (name, problem)
        for name in required:
            if name not in value:
                return ": no member %s" % name
        return None

    return check


def by_member(name, forms):
    """An object whose form depends on the value of one of its members."""

    def check(value):
        if type(value) is not dict:
            return ": not an object"
        form = forms.get(value[name]) if type(value.get(name)) is str else None
        return form(value) if form else "/%s: not one of the known values" % name

    return check


HEX32 = text(pattern="[0-9a-f]{32}")
HEX64 = text(pattern="[0-9a-f]{64}")
DIGEST = text(pattern="sha256:[0-9a-f]{64}")
TIME = text(pattern="[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z")
COUNT = integer(0)
SECONDS = number(0)


# ---------------------------------------------------------------------------------------------------------------
# The protocol inside a manifest (docs/formats/protocol.md)
# ---------------------------------------------------------------------------------------------------------------

STAGES = ("generate", "grade")
PHASES = ("queue", "connect", "headers", "body", "spawn", "running", "collect", "between")
CAUSES = (
    "connection_refused", "connection_lost", "time_limit", "queue_limit", "http_status", "body_not_json", "body_error",
    "body_no_choice", "body_malformed", "body_too_large", "spawn_failed", "exit_status", "killed_by_signal",
    "candidate_missing", "report_missing", "report_invalid", "process_gone", "grader_fault", "storage_fault",
)  # fmt: skip
ATTRIBUTIONS = ("infrastructure", "model", "undetermined")
MAX_SET_DEPTH = 50


def _day(value):
    problem = text(pattern="[0-9]{4}-[0-9]{2}-[0-9]{2}")(value)
    if problem:
        return problem
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return ": no day of the calendar"
    return None


def _task_set(value):
    if type(value) is not dict:
        return ": not an object"
    if "file" in value:
        return _FILE_SET(value)
    return _SUBSET(value) if "subset_of" in value else _UNION(value)


def _when(value):
    return _CONDITIONS(value) or (None if value else ": no condition")


_ID = text(1, 200)
_PATH = text(1, 4096)
_DURATION = number(above=0, high=604800)
_BYTES = integer(1, 2**40)
_ARGV = list_of(text(0, 4096), 1, 256)
_ENVIRONMENT = list_of(text(pattern="[A-Za-z_][A-Za-z0-9_]*"), 0, 64)
_PLANNED_COUNT = integer(1, 10_000_000)
_STATUS = one_or_more(either(integer(100, 599), one_of("4xx", "5xx")))
_FILE_SET = members({"file": _PATH, "id": text(1), "count": _PLANNED_COUNT})
_SUBSET = members({"subset_of": _ID, "ids": _PATH, "count": _PLANNED_COUNT})
_UNION = members({"union_of": list_of(_ID, 2), "count": _PLANNED_COUNT})
_CONDITIONS = members(
    {},
    {
        "stage": one_or_more(one_of(*STAGES)),
        "phase": one_or_more(one_of(*PHASES)),
        "cause": one_or_more(one_of(*CAUSES)),
        "http_status": _STATUS,
        "embedded_status": _STATUS,
        "exit_status": one_or_more(integer(0, 255)),
        "signal": one_or_more(text(pattern="SIG[A-Z0-9]+")),
        "service_alive": boolean,
        "exception": one_or_more(text(1)),
        "text": text(1),
    },
)
_STEP = members({"argv": _ARGV, "wall_s": _DURATION, "output_bytes": _BYTES}, {"env": _ENVIRONMENT})
_RUNNERS = {
    "openai": members(
        {
            "adapter": one_of("openai"),
            "endpoint": one_of("chat", "completions"),
            "service": members(
                {
                    "argv": _ARGV,
                    "ready": members({"path": text(pattern="(?s:/.*)"), "timeout_s": _DURATION}),
                    "restarts": integer(0, 1000),
                    "stop_grace_s": _DURATION,
                    "gpus": COUNT,
                },
                {"env": _ENVIRONMENT},
            ),
            "limits": members({"request_s": _DURATION, "queue_wait_s": number(0, 86400), "response_bytes": _BYTES}),
            "sources": map_of(_PATH, _ID),
        }
    ),
    "command": members(
        {
            "adapter": one_of("command"),
            "generate": _STEP,
            "grade": _STEP,
            "grace_s": _DURATION,
            "candidate": text(1),
            "gpus": COUNT,
            "sources": map_of(_PATH, _ID),
        }
    ),
}
_GRADERS = {
    "exact": members({"kind": one_of("exact"), "answer": text(1)}),
    "integer": members({"kind": one_of("integer"), "answer": text(1)}),
    "report": members(
        {"kind": one_of("report"), "reward": members({"min": number(), "max": number()})},
        {"expected_tests": text(1), "report_schema": _PATH},
    ),
}
_CONDITION = members(
    {
        "prompt": members({"user": text(1)}, {"system": text()}),
        "decoding": members(
            {
                "temperature": number(0, 10),
                "top_p": number(0, 1),
                "top_k": integer(-1),
                "min_p": number(0, 1),
                "max_tokens": integer(1),
            },
            {
                "stop": list_of(text(1), 0, 4),
                "presence_penalty": number(),
                "frequency_penalty": number(),
                "repetition_penalty": number(),
            },
        ),
        "grader": by_member("kind", _GRADERS),
    },
    {"reasoning": one_of("on", "off"), "execution": map_of(either(text(), number(), boolean))},
)
_ANALYSIS = members(
    {
        "scores": list_of(members({"id": _ID, "queue": _ID}), 1),
        "contrasts": list_of(
            members(
                {
                    "id": _ID,
                    "minuend": _ID,
                    "subtrahend": _ID,
                    "queue": _ID,
                    "role": one_of("primary", "secondary", "exploratory"),
                }
            )
        ),
        "interval": members(
            {
                "method": one_of("two_way_bootstrap"),
                "resamples": integer(100, 1_000_000),
                "seed": COUNT,
                "level": number(above=0, below=1),
            }
        ),
    },
    {
        "tables": list_of(
            members(
                {"id": _ID, "queue": _ID, "partitions": list_of(_ID, 1), "role": one_of("secondary", "exploratory")}
            )
        ),
        "decisions": list_of(
            members(
                {
                    "id": _ID,
                    "contrast": _ID,
                    "comparator": one_of(">", ">=", "<", "<="),
                    "threshold": number(),
                    "when_met": text(1),
                    "otherwise": text(1),
                }
            )
        ),
    },
)
PROTOCOL_FORM = members(
    {
        "boundbook": one_of(1),
        "name": text(pattern="[a-z0-9][a-z0-9._-]{0,63}"),
        "revision": integer(1, 9999),
        "title": text(1),
        "task_sets": map_of(_task_set, _ID),
        "models": map_of(
            members({"weights": _PATH}, {"training_seeds": list_of(integer(), 1), "tokenizer": _PATH}), _ID
        ),
        "conditions": map_of(_CONDITION, _ID),
        "arms": map_of(members({"model": _ID, "condition": _ID}), _ID),
        "queues": map_of(
            members(
                {
                    "tasks": _ID,
                    "reps": integer(1, 100000),
                    "arms": list_of(_ID, 1),
                    "role": one_of("confirmatory", "exploratory"),
                },
                {"evaluation_seeds": list_of(COUNT, 1)},
            ),
            _ID,
        ),
        "sampling": members({"namespace": _ID, "bits": integer(8, 53)}),
        "order": members(
            {
                "group_by": list_of(one_of("queue", "arm", "training_seed", "evaluation_seed")),
                "within": one_of("hash"),
            }
        ),
        "runner": by_member("adapter", _RUNNERS),
        "attempts": members(
            {
                "replacements": integer(0, 1),
                "regrades": integer(0, 1),
                "breaker": integer(1),
                "rules": list_of(
                    members(
                        {"id": _ID, "when": _when, "attribute": one_of(*ATTRIBUTIONS), "sufficient": boolean}
                    ),
                    0,
                    200,
                ),
            },
            {"adjudication": one_of("required", "none")},
        ),
        "blinding": one_of("masked", "none"),
        "analysis": _ANALYSIS,
        "pending": list_of(_ID),
    },
    {
        "due": _day,
        "precision": list_of(
            members({"queue": _ID, "assumed_accuracy": number(0, 1), "max_standard_error": number(above=0)})
        ),
        "checkpoints": members({"every_attempts": integer(1, 1_000_000)}),
    },
)


def _repeats(values):
    """Whether a value occurs twice in a list of texts or numbers."""
    return len(set(values)) != len(values)


def training_seeds(protocol, arm):
    """Training seeds of an arm's model; a model without them has the one seed null."""
    model = protocol["models"][protocol["arms"][arm]["model"]]
    return model.get("training_seeds", [None])


def evaluation_seeds(queue):
    return queue.get("evaluation_seeds", [0])


def _set_depths(sets):
    """Refuses task sets that rest on undeclared ones, on themselves, or on a chain that is too long."""
    depths = {}

    def depth(name, above):
        if name not in sets:
            raise Refusal("the task set %s is not declared" % quote(name))
        if above > MAX_SET_DEPTH:
            raise Refusal("the task set %s rests on itself, or on too long a chain" % quote(name))
        if name not in depths:
            parts = _parts_of(sets[name])
            depths[name] = 1 + max([depth(part, above + 1) for part in parts], default=0)
        return depths[name]

    for name in sets:
        if depth(name, 1) > MAX_SET_DEPTH:
            raise Refusal("the task set %s rests on too long a chain" % quote(name))


def _parts_of(task_set):
    if "subset_of" in task_set:
        return [task_set["subset_of"]]
    return task_set.get("union_of", [])


def _check_task_sets(sets):
    _set_depths(sets)
    for name, task_set in sets.items():
        counts = [sets[part]["count"] for part in _parts_of(task_set)]
        if "subset_of" in task_set and task_set["count"] > counts[0]:
            raise Refusal("the task set %s is larger than what it is taken from" % quote(name))
        if "union_of" in task_set and (task_set["count"] != sum(counts) or _repeats(task_set["union_of"])):
            raise Refusal("the task set %s is not the sum of its parts" % quote(name))


def _check_arms_and_queues(protocol):
    sets, arms, queues = protocol["task_sets"], protocol["arms"], protocol["queues"]
    for name, arm in arms.items():
        if arm["model"] not in protocol["models"] or arm["condition"] not in protocol["conditions"]:
            raise Refusal("the arm %s names something undeclared" % quote(name))
    if _repeats([(arm["model"], arm["condition"]) for arm in arms.values()]):
        raise Refusal("two arms are the same")
    for name, model in protocol["models"].items():
        if _repeats(model.get("training_seeds", [])):
            raise Refusal("the model %s has a training seed twice" % quote(name))
    if not queues:
        raise Refusal("no queue is declared")
    for name, queue in queues.items():
        if queue["tasks"] not in sets or any(arm not in arms for arm in queue["arms"]):
            raise Refusal("the queue %s names something undeclared" % quote(name))
        if _repeats(queue["arms"]) or _repeats(evaluation_seeds(queue)):
            raise Refusal("the queue %s names something twice" % quote(name))


def _check_contrast(protocol, contrast):
    name, arms = quote(contrast["id"]), (contrast["minuend"], contrast["subtrahend"])
    queue = protocol["queues"].get(contrast["queue"])
    if queue is None or any(arm not in queue["arms"] for arm in arms) or arms[0] == arms[1]:
        raise Refusal("the contrast %s has not two different arms of a declared queue" % name)
    if contrast["role"] == "primary" and queue["role"] != "confirmatory":
        raise Refusal("the primary contrast %s has no confirmatory queue" % name)
    seeds = [training_seeds(protocol, arm) for arm in arms]
    if [None] not in seeds and not set(seeds[0]) & set(seeds[1]):
        raise Refusal("the arms of the contrast %s share no training seed" % name)


def _check_analysis(protocol):
    analysis, queues = protocol["analysis"], protocol["queues"]
    named = [item["queue"] for key in ("scores", "tables") for item in analysis.get(key, [])]
    if any(queue not in queues for queue in named + [item["queue"] for item in protocol.get("precision", [])]):
        raise Refusal("the analysis names an undeclared queue")
    for table in analysis.get("tables", []):
        if _repeats(table["partitions"]) or any(part not in protocol["task_sets"] for part in table["partitions"]):
            raise Refusal("the partitions of the table %s are not declared task sets" % quote(table["id"]))
    for contrast in analysis["contrasts"]:
        _check_contrast(protocol, contrast)
    if _repeats([(c["queue"], frozenset((c["minuend"], c["subtrahend"]))) for c in analysis["contrasts"]]):
        raise Refusal("two contrasts of one queue compare the same arms")
    contrasts = {contrast["id"] for contrast in analysis["contrasts"]}
    for decision in analysis.get("decisions", []):
        if decision["contrast"] not in contrasts or decision["when_met"] == decision["otherwise"]:
            raise Refusal("the decision %s has no contrast or only one outcome" % quote(decision["id"]))


def check_references(protocol):
    """Refuses a protocol of the right form whose parts do not fit together."""
    _check_task_sets(protocol["task_sets"])
    _check_arms_and_queues(protocol)
    _check_analysis(protocol)
    if _repeats(protocol["order"]["group_by"]):
        raise Refusal("the order names a field twice")


# ---------------------------------------------------------------------------------------------------------------
# Manifests (docs/formats/manifest.md)
# ---------------------------------------------------------------------------------------------------------------

MAX_MANIFEST_SIZE = 256 * 2**20
_MANIFEST_NAME = re.compile("[a-z0-9][a-z0-9._-]{0,63}\\.r[0-9]+\\.[0-9a-f]{12}\\.json")
_BOUND_FILE = {"kind": one_of("file"), "name": text(1), "path": text(1), "size": COUNT, "digest": DIGEST}
_BOUND_TREE = {
    "kind": one_of("tree"),
    "name": text(1),
    "path": text(1),
    "size": COUNT,
    "files": integer(1),
    "digest": DIGEST,
    "oms_root": DIGEST,
    "ignored": one_of("git-metadata/1"),
    "entries": list_of(members({"path": text(1), "size": COUNT, "digest": DIGEST})),
}
_PLAN_FORM = members({"count": COUNT, "digest": DIGEST})
_EXPOSURE = members(
    {
        "slots_run": COUNT,
        "settled": COUNT,
        "unblinded": boolean,
        "bounds": map_of(members({"lower": number(), "upper": number()})),
        "declared": nullable(text()),
    }
)
_EVIDENCE_FILE = members({"path": text(1), "size": COUNT, "digest": DIGEST})
MANIFEST_FORM = members(
    {
        "format": one_of("boundbook/manifest/1"),
        "tool": members({"name": one_of("boundbook"), "version": text(1), "dependencies": map_of(text())}),
        "created": TIME,
        "name": text(),
        "revision": integer(),
        "title": text(),
        "sequence": integer(1),
        "previous": nullable(DIGEST),
        "due": nullable(_day),
        "protocol": PROTOCOL_FORM,
        "protocol_source": members(
            {"raw_digest": DIGEST, "parser": members({"name": text(), "version": text()})}
        ),
        "bindings": list_of(by_member("kind", {"file": members(_BOUND_FILE), "tree": members(_BOUND_TREE)})),
        "plan": nullable(_PLAN_FORM),
        "pending_items": list_of(members({"item": text(), "evidence": nullable(_EVIDENCE_FILE)})),
        "pending": list_of(text()),
        "execution_ready": boolean,
        "parent": nullable(DIGEST),
        "supersedes": nullable(DIGEST),
        "reason": nullable(text(1)),
        "exposure": nullable(_EXPOSURE),
        "task_use": list_of(members({"binding": text(), "digest": DIGEST, "plans": COUNT})),
    }
)


class Manifest:
    """A manifest that has been read: its value, its digest and its bindings by name."""

    def __init__(self, value, digest):
        self.value = value
        self.digest = digest
        self.protocol = value["protocol"]
        self.bindings = {binding["name"]: binding for binding in value["bindings"]}


def parse_manifest(data, file_name=None):
    """Reads a manifest file and holds it against every rule that needs no other file."""
    value = parse_canonical(data)
    problem = MANIFEST_FORM(value)
    if problem:
        raise Refusal(problem.lstrip(": "))
    digest = digest_of(data)
    own_name = "%s.r%d.%s.json" % (value["name"], value["revision"], digest[7:19])
    if file_name is not None and _MANIFEST_NAME.fullmatch(file_name) and file_name != own_name:
        raise Refusal("its bytes belong to the name %s" % own_name)
    protocol = value["protocol"]
    check_references(protocol)
    for member in ("name", "revision", "title"):
        if value[member] != protocol[member]:
            raise Refusal("/%s is not that of the protocol" % member)
    if value["due"] != protocol.get("due"):
        raise Refusal("/due is not that of the protocol")
    _check_bindings(value)
    _check_pending(value)
    if (value["reason"] is None) != (value["supersedes"] is None):
        raise Refusal("a reason stands exactly where something is superseded")
    return Manifest(value, digest)


def wanted_bindings(protocol):
    """What a protocol asks to be bound: for each name the possible kinds and the path (None: any)."""
    wanted = {}

    def want(name, kinds, path):
        if name in wanted:
            raise Refusal("two bindings are called %s" % quote(name))
        wanted[name] = (kinds, path)

    for name, model in protocol["models"].items():
        for seed in model.get("training_seeds", [None]):
            label = name if seed is None else "%s@%d" % (name, seed)
            for member, prefix, kind in (("weights", "weights/", "tree"), ("tokenizer", "tokenizer/", "file")):
                if member in model:
                    path = model[member] if seed is None else model[member].replace("{seed}", str(seed))
                    want(prefix + label, (kind,), path)
    for name, task_set in protocol["task_sets"].items():
        if "union_of" not in task_set:
            want("tasks/" + name, ("file",), task_set.get("file", task_set.get("ids")))
    for name, condition in protocol["conditions"].items():
        if "report_schema" in condition["grader"]:
            want("report-schema/" + name, ("file",), condition["grader"]["report_schema"])
    for name, path in protocol["runner"]["sources"].items():
        want("runner/" + name, ("file", "tree"), path)
    want("runner/boundbook", ("tree",), None)
    return wanted


def _check_bindings(value):
    wanted = wanted_bindings(value["protocol"])
    before = None
    for binding in value["bindings"]:
        name = to_utf8(binding["name"])
        if before is not None and name <= before:
            raise Refusal("the bindings do not ascend at %s" % quote(binding["name"]))
        before = name
        kinds, path = wanted.get(binding["name"], ((), None))
        if binding["kind"] not in kinds or path not in (None, binding["path"]):
            raise Refusal("the protocol asks for no such binding as %s" % quote(binding["name"]))
        if binding["kind"] == "tree":
            _check_tree(binding)


def _check_tree(binding):
    entries = binding["entries"]
    paths = [to_utf8(entry["path"]) for entry in entries]
    if any(a >= b for a, b in zip(paths, paths[1:])):
        raise Refusal("the files of %s do not ascend" % quote(binding["name"]))
    pairs = [(entry["path"], entry["digest"][7:]) for entry in entries]
    computed = (sum(entry["size"] for entry in entries), len(entries), tree_digest(pairs), oms_root(pairs))
    if computed != (binding["size"], binding["files"], binding["digest"], binding["oms_root"]):
        raise Refusal("%s does not follow from its files" % quote(binding["name"]))


def _check_pending(value):
    protocol = value["protocol"]
    if [item["item"] for item in value["pending_items"]] != protocol["pending"]:
        raise Refusal("/pending_items is not the list of the protocol")
    bound = {binding["name"] for binding in value["bindings"]}
    missing = sorted((name for name in wanted_bindings(protocol) if name not in bound), key=to_utf8)
    pending = [item["item"] for item in value["pending_items"] if item["evidence"] is None]
    if value["pending"] != pending + ["binding " + name for name in missing]:
        raise Refusal("/pending is not what is open")
    if value["execution_ready"] != (not value["pending"]):
        raise Refusal("/execution_ready does not follow from what is pending")
    if (value["plan"] is not None) == any(name.startswith("tasks/") for name in missing):
        raise Refusal("a plan stands exactly where all task files are bound")


# ---------------------------------------------------------------------------------------------------------------
# Task files (docs/formats/protocol.md, Task files)
# ---------------------------------------------------------------------------------------------------------------

_TRIMMED = "\t\n\v\f\r "
_INVISIBLE = frozenset("\u00ad\u200b\u200e\u200f\ufeff") | {
    chr(code) for first, last in ((0x202A, 0x202E), (0x2060, 0x2064), (0x2066, 0x206F)) for code in range(first, last + 1)
}
_WHOLE_NUMBER = re.compile("[+-]?[0-9]+")


def is_task_id(value):
    """The rule for ids."""
    if type(value) is not str or not value or value == "__proto__" or has_lone_surrogate(value):
        return False
    if value.isascii():
        return len(value) <= 200 and value.isprintable() and value.strip(" ") == value
    if any(c in _INVISIBLE or unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in value):
        return False
    if unicodedata.category(value[0]) == "Zs" or unicodedata.category(value[-1]) == "Zs":
        return False
    return unicodedata.normalize("NFC", value) == value and len(value.encode("utf-16-le")) <= 400


class TaskSet:
    """Tasks in order: their ids, and the lines that hold their fields (None where a file is redacted)."""

    def __init__(self):
        self.positions = {}
        self.lines = []

    def add(self, task, line):
        if not is_task_id(task):
            raise Refusal("%s is no task id" % quote(str(task)))
        if task in self.positions:
            raise Refusal("the task %s stands twice" % quote(task))
        self.positions[task] = len(self.lines)
        self.lines.append(line)

    def line(self, task):
        return self.lines[self.positions[task]]


def _task_lines(data):
    pointer = data.startswith(b"version https://git-lfs.github.com/spec/")
    if len(data) < 4096:
        pointer = pointer or data.startswith(b"annex/objects/") or data.startswith(b"/annex/objects/")
    if not data or pointer or data.startswith(b"\xef\xbb\xbf"):
        raise Refusal("empty, a pointer to a file, or with a byte-order mark")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal("not UTF-8 at byte %d" % error.start) from None
    if b"\r" in data:
        raise Refusal("a carriage return")
    return (data[:-1] if data.endswith(b"\n") else data).split(b"\n")


def _read_task_file(data, id_member):
    tasks = TaskSet()
    for line in _task_lines(data):
        value = parse_json(line)
        if type(value) is not dict:
            raise Refusal("a line that is no object")
        tasks.add(value.get(id_member), line)
    return tasks


def _read_subset(data, whole):
    tasks = TaskSet()
    for line in _task_lines(data):
        task = line.decode("utf-8")
        if task not in whole.positions:
            raise Refusal("the task %s is not in the larger set" % quote(task))
        tasks.add(task, whole.line(task))
    return tasks


def _listed_tasks(ids, whole):
    """The tasks of a redacted file: ids without fields, or, for a subset, with those of the larger set."""
    tasks = TaskSet()
    for task in ids:
        if whole is not None and task not in whole.positions:
            raise Refusal("the task %s is not in the larger set" % quote(str(task)))
        tasks.add(task, whole.line(task) if whole is not None else None)
    return tasks


def read_task_sets(protocol, read_file, redacted_ids):
    """All task sets by name; read_file(set) gives the bytes of a set's file, redacted_ids {set: ids} replaces it."""
    declared, done = protocol["task_sets"], {}

    def resolve(name):
        if name in done:
            return done[name]
        task_set = declared[name]
        if "union_of" in task_set:
            tasks = TaskSet()
            for part in [resolve(part) for part in task_set["union_of"]]:
                for task, position in part.positions.items():
                    tasks.add(task, part.lines[position])
        else:
            whole = resolve(task_set["subset_of"]) if "subset_of" in task_set else None
            if name in redacted_ids:
                tasks = _listed_tasks(redacted_ids[name], whole)
            elif whole is not None:
                tasks = _read_subset(read_file(name), whole)
            else:
                tasks = _read_task_file(read_file(name), task_set["id"])
        if len(tasks.lines) != task_set["count"]:
            raise Refusal("the task set %s has %d tasks, not %d" % (quote(name), len(tasks.lines), task_set["count"]))
        done[name] = tasks
        return tasks

    for name in declared:
        resolve(name)
    return done


def parse_template(template):
    """A prompt as a list of ("text", …) and ("field", …)."""
    parts, literal, position = [], [], 0
    while position < len(template):
        pair, character = template[position : position + 2], template[position]
        if pair in ("{{", "}}"):
            literal.append(character)
            position += 2
        elif character == "{":
            end = template.find("}", position)
            name = template[position + 1 : end] if end >= 0 else ""
            if not name or "{" in name or "\n" in name:
                raise Refusal("a placeholder without name or end in a prompt")
            parts += [("text", "".join(literal)), ("field", name)]
            literal, position = [], end + 1
        elif character == "}":
            raise Refusal("a closing brace alone in a prompt")
        else:
            literal.append(character)
            position += 1
    return parts + [("text", "".join(literal))]


def fill_template(parts, fields):
    """A prompt with the fields of a task."""
    texts = []
    for kind, content in parts:
        if kind == "field":
            value = fields[content]
            content = value if type(value) is str else canonical_text(value)
        texts.append(content)
    return "".join(texts)


def _needed_fields(condition):
    """The fields that a condition needs of a task, each with its check."""
    prompt, grader = condition["prompt"], condition["grader"]
    needed = []
    for template in [prompt["user"]] + ([prompt["system"]] if "system" in prompt else []):
        names = [content for kind, content in parse_template(template) if kind == "field"]
        needed += [(name, lambda value: value is not None) for name in names]
    if grader["kind"] == "exact":
        needed.append((grader["answer"], lambda value: reference_text(value) not in (None, "")))
    elif grader["kind"] == "integer":
        needed.append((grader["answer"], lambda value: _WHOLE_NUMBER.fullmatch(reference_text(value) or "")))
    elif "expected_tests" in grader:
        needed.append((grader["expected_tests"], _is_test_list))
    return needed


def reference_text(value):
    """The trimmed text of a reference answer, or None for something that is neither text nor integer."""
    if type(value) is int:
        return str(value)
    return value.strip(_TRIMMED) if type(value) is str else None


def _is_test_list(value):
    return list_of(text(1), 1)(value) is None and not _repeats(value)


# ---------------------------------------------------------------------------------------------------------------
# Plans: what a manifest and its task files say about slots
# ---------------------------------------------------------------------------------------------------------------


def _in_utf16_order(names):
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


class Plan:
    """A protocol with its tasks."""

    def __init__(self, protocol, task_sets):
        self.protocol = protocol
        self.task_sets = task_sets
        self.queues = _in_utf16_order(protocol["queues"])
        self._check_partitions()
        self._check_fields()

    def _check_partitions(self):
        for table in self.protocol["analysis"].get("tables", []):
            tasks = self.tasks(table["queue"]).positions
            for partition in table["partitions"]:
                if any(task not in tasks for task in self.task_sets[partition].positions):
                    raise Refusal("the partition %s has a task outside its queue" % quote(partition))

    def _check_fields(self):
        for name in self.queues:
            conditions = [self.condition(arm) for arm in self.protocol["queues"][name]["arms"]]
            needed = [item for condition in conditions for item in _needed_fields(condition)]
            for line in self.tasks(name).lines:
                fields = parse_json(line) if needed and line is not None else None
                for field, accepts in needed if fields is not None else []:
                    if field not in fields or not accepts(fields[field]):
                        raise Refusal("a task of the queue %s has no fit field %s" % (quote(name), quote(field)))

    def tasks(self, queue):
        return self.task_sets[self.protocol["queues"][queue]["tasks"]]

    def condition(self, arm):
        return self.protocol["conditions"][self.protocol["arms"][arm]["condition"]]

    def reward_range(self, arm):
        reward = self.condition(arm)["grader"].get("reward")
        return (reward["min"], reward["max"]) if reward else (0, 1)

    def model_name(self, key):
        model = self.protocol["arms"][key["arm"]]["model"]
        return model if key["training_seed"] is None else "%s@%d" % (model, key["training_seed"])

    def fields(self, key):
        """The fields of a slot's task, or None when its file is redacted."""
        line = self.tasks(key["queue"]).line(key["task"])
        return None if line is None else parse_json(line)

    def has(self, key):
        """Whether a key is that of a planned slot."""
        queue = self.protocol["queues"].get(key["queue"])
        return (
            queue is not None
            and key["arm"] in queue["arms"]
            and key["training_seed"] in training_seeds(self.protocol, key["arm"])
            and key["evaluation_seed"] in evaluation_seeds(queue)
            and key["task"] in self.tasks(key["queue"]).positions
            and key["rep"] < queue["reps"]
        )

    def sampling_seed(self, key):
        sampling = self.protocol["sampling"]
        return sampling_seed(sampling["namespace"], sampling["bits"], slot_tuple(key))

    def rows(self, queue):
        """The sets of weights of a queue, as (arm, training seed, evaluation seed), in the order of the expansion."""
        declared = self.protocol["queues"][queue]
        for arm in _in_utf16_order(declared["arms"]):
            for seed in training_seeds(self.protocol, arm):
                for evaluation_seed in evaluation_seeds(declared):
                    yield arm, seed, evaluation_seed

    def count(self, queue):
        """The number of slots of a queue."""
        rows = sum(1 for _ in self.rows(queue))
        return rows * len(self.tasks(queue).lines) * self.protocol["queues"][queue]["reps"]

    def digest(self):
        """Number of slots and plan digest."""
        hasher, count = hashlib.sha256(), 0
        for queue in self.queues:
            reps = range(self.protocol["queues"][queue]["reps"])
            tasks = [canonical_text(task) for task in self.tasks(queue).positions]
            for row in self.rows(queue):
                prefix = canonical_text([queue, *row])[1:-1]
                for task in tasks:
                    lines = [_slots_line("%s,%s,%d]" % (prefix, task, rep)) for rep in reps]
                    hasher.update(b"".join(lines))
                    count += len(lines)
        return {"count": count, "digest": "sha256:" + hasher.hexdigest()}


def _slots_line(tail):
    """A line of the slots file from the canonical slot tuple without its bracket."""
    data = tail.encode("utf-8")
    return b'["%s",%s\n' % (sha256_hex(b"[" + data)[:32].encode("ascii"), data)


def slot_tuple(key):
    return [key["queue"], key["arm"], key["training_seed"], key["evaluation_seed"], key["task"], key["rep"]]


# ---------------------------------------------------------------------------------------------------------------
# Patterns of rules: the common part of ECMAScript's regular expressions under the flags i and u, matched in time
# proportional to pattern × text whatever the pattern (docs/formats/attempts.md, Attribution by rule)
# ---------------------------------------------------------------------------------------------------------------

MAX_PATTERN_STATES = 5_000
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")


class Unsupported(Exception):
    """A pattern beyond the common part."""


def _is_word(character):
    return character.isascii() and (character.isalnum() or character == "_") or character in "\u017f\u212a"


def _is_space(character):
    return character in "\t\n\v\f\r\ufeff\u2028\u2029" or unicodedata.category(character) == "Zs"


_CLASS_ESCAPES = {
    "d": lambda c: c in "0123456789",
    "w": _is_word,
    "s": _is_space,
    "D": lambda c: c not in "0123456789",
    "W": lambda c: not _is_word(c),
    "S": lambda c: not _is_space(c),
}
_SAME_LETTER = {"s": "\u017f", "k": "\u212a"}


def _variants(character):
    """A literal with all characters that are the same to the flags i and u."""
    if not character.isascii():
        if character.lower() != character or character.upper() != character or character in "\u017f\u212a":
            raise Unsupported
        return frozenset(character)
    lower = character.lower()
    return frozenset((lower, character.upper(), _SAME_LETTER.get(lower, lower)))


class _PatternReader:
    """Reads a pattern into nodes: ("set", predicate), ("assert", kind), ("sequence", nodes), ("choice", nodes),
    ("repeat", node, least, most or None)."""

    def __init__(self, pattern):
        self.pattern = pattern
        self.position = 0
        self.depth = 0

    def read(self):
        node = self._choice()
        if self.position < len(self.pattern):
            raise Unsupported
        return node

    def _peek(self):
        return self.pattern[self.position : self.position + 1]

    def _take(self, expected):
        if not self.pattern.startswith(expected, self.position):
            return False
        self.position += len(expected)
        return True

    def _next(self):
        character = self._peek()
        if not character:
            raise Unsupported
        self.position += 1
        return character

    def _choice(self):
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return ("choice", options)

    def _sequence(self):
        nodes = []
        while self._peek() not in ("", "|", ")"):
            nodes.append(self._quantified(self._atom()))
        return ("sequence", nodes)

    def _atom(self):
        character = self._next()
        if character == "(":
            return self._group()
        if character == "[":
            return ("set", self._class())
        if character == ".":
            return ("set", lambda c: c not in "\n\r\u2028\u2029")
        if character in "^$":
            return ("assert", character)
        if character == "\\":
            return self._escape()
        if character in _SYNTAX and character != "/":
            raise Unsupported
        return ("set", _variants(character).__contains__)

    def _group(self):
        if self._take("?") and not self._take(":"):
            raise Unsupported
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsupported
        node = self._choice()
        if not self._take(")"):
            raise Unsupported
        self.depth -= 1
        return node

    def _escape(self):
        character = self._next()
        if character in "bB":
            return ("assert", character)
        if character in _CLASS_ESCAPES:
            return ("set", _CLASS_ESCAPES[character])
        if character in _SYNTAX:
            return ("set", frozenset(character).__contains__)
        raise Unsupported

    def _class(self):
        negated = self._take("^")
        singles, predicates = set(), []
        while not self._take("]"):
            first = self._class_member()
            if self._peek() == "-" and self.pattern[self.position + 1 : self.position + 2] != "]":
                self._next()
                last = self._class_member()
                if callable(first) or callable(last) or first > last or not last.isascii():
                    raise Unsupported
                for code in range(ord(first), ord(last) + 1):
                    singles |= _variants(chr(code))
            elif callable(first):
                predicates.append(first)
            else:
                singles |= _variants(first)

        def matches(character):
            return (character in singles or any(one(character) for one in predicates)) != negated

        return matches

    def _class_member(self):
        """A character, or the predicate of an escape such as \\d."""
        character = self._next()
        if character != "\\":
            return character
        escaped = self._next()
        if escaped in _CLASS_ESCAPES:
            return _CLASS_ESCAPES[escaped]
        if escaped in _SYNTAX or escaped == "-":
            return escaped
        raise Unsupported

    def _quantified(self, node):
        least, most = self._quantifier()
        if least is None:
            return node
        if node[0] == "assert" or self._quantifier()[0] is not None:
            raise Unsupported
        return ("repeat", node, least, most)

    def _quantifier(self):
        """Least and most repetitions, (None, None) without a quantifier. A lazy one matches the same texts."""
        bounds = (None, None)
        counted = re.compile("\\{([0-9]{1,5})(,([0-9]{0,5}))?\\}").match(self.pattern, self.position)
        if counted:
            self.position = counted.end()
            least = int(counted.group(1))
            most = least if counted.group(2) is None else int(counted.group(3)) if counted.group(3) else None
            bounds = (least, most)
        elif self._take("*"):
            bounds = (0, None)
        elif self._take("+"):
            bounds = (1, None)
        elif self._take("?"):
            return (0, 1) if not self._take("?") else (0, 1)
        if bounds[0] is not None:
            self._take("?")
            if bounds[1] is not None and bounds[1] < bounds[0]:
                raise Unsupported
        return bounds


class Pattern:
    """A compiled pattern: a nondeterministic automaton. States are ("set", predicate, next), ("assert", kind, next),
    ("split", a, b) and ("match",)."""

    def __init__(self, source):
        self._states = [("match",)]
        self._start = self._compile(_PatternReader(source).read(), 0)

    def _add(self, state):
        if len(self._states) >= MAX_PATTERN_STATES:
            raise Unsupported
        self._states.append(state)
        return len(self._states) - 1

    def _compile(self, node, following):
        """Adds the states of a node that go on at the state `following`; gives the first of them."""
        kind = node[0]
        if kind in ("set", "assert"):
            return self._add((kind, node[1], following))
        if kind == "sequence":
            for part in reversed(node[1]):
                following = self._compile(part, following)
            return following
        if kind == "choice":
            starts = [self._compile(part, following) for part in node[1]]
            first = starts[-1]
            for start in reversed(starts[:-1]):
                first = self._add(("split", start, first))
            return first
        return self._compile_repeat(node, following)

    def _compile_repeat(self, node, following):
        _, part, least, most = node
        if most is None:
            loop = self._add(("split", following, following))
            self._states[loop] = ("split", self._compile(part, loop), following)
            following = loop
        else:
            end = following
            for _ in range(most - least):
                following = self._add(("split", self._compile(part, following), end))
        for _ in range(least):
            following = self._compile(part, following)
        return following

    def found_in(self, subject):
        """Whether the pattern matches anywhere in a text."""
        waiting = []
        for position in range(len(subject) + 1):
            reading = self._settle([self._start] + waiting, subject, position)
            if reading is None:
                return True
            if position < len(subject):
                character = subject[position]
                waiting = [self._states[state][2] for state in reading if self._states[state][1](character)]
        return False

    def _settle(self, waiting, subject, position):
        """The states that read a character next, reached from those given; None when the match state is reached."""
        reading, seen = [], set()
        while waiting:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            kind = self._states[state][0]
            if kind == "match":
                return None
            if kind == "set":
                reading.append(state)
            elif kind == "split":
                waiting += self._states[state][1:]
            elif _holds(self._states[state][1], subject, position):
                waiting.append(self._states[state][2])
        return reading


def _holds(assertion, subject, position):
    if assertion == "^":
        return position == 0
    if assertion == "$":
        return position == len(subject)
    before = position > 0 and _is_word(subject[position - 1])
    after = position < len(subject) and _is_word(subject[position])
    return (before != after) == (assertion == "b")


# ---------------------------------------------------------------------------------------------------------------
# Attribution by rule (docs/formats/attempts.md)
# ---------------------------------------------------------------------------------------------------------------


class Rules:
    """The attribution rules of a protocol."""

    def __init__(self, declared):
        self._rules = declared
        self._patterns = {}
        for rule in declared:
            if "text" in rule["when"]:
                self._patterns[rule["when"]["text"]] = _compile_pattern(rule["when"]["text"])

    def attribute(self, signals):
        """(attribution, id of the rule or None); raises Unsupported when that rests on a pattern beyond the common part."""
        for rule in self._rules:
            if self._matches(rule["when"], signals):
                return (_verdict_of(rule), rule["id"])
        return ("undetermined", None)

    def _matches(self, when, signals):
        if not all(_condition_holds(name, wanted, signals[name]) for name, wanted in when.items() if name != "text"):
            return False
        if "text" not in when:
            return True
        pattern = self._patterns[when["text"]]
        if signals["text"] is None:
            return False
        if pattern is None:
            raise Unsupported
        return pattern.found_in(signals["text"])


def _compile_pattern(source):
    try:
        return Pattern(source)
    except Unsupported:
        return None


def _verdict_of(rule):
    names_alone = {"exception", "text"} & set(rule["when"]) and set(rule["when"]) <= {"exception", "text", "stage"}
    return rule["attribute"] if rule["sufficient"] and not names_alone else "undetermined"


def _condition_holds(name, wanted, signal):
    if signal is None:
        return False
    if name == "service_alive":
        return signal is wanted
    values = wanted if type(wanted) is list else [wanted]
    if name in ("http_status", "embedded_status"):
        return any(signal == value or value == "%dxx" % (signal // 100) for value in values)
    return signal in values


# ---------------------------------------------------------------------------------------------------------------
# Where a bundle lies: a folder or a tar. Both give paths with sizes, and files to read by path
# ---------------------------------------------------------------------------------------------------------------

MAX_FILES = 100_000
MAX_INDEX_SIZE = 64 * 2**20
_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_BUNDLE_PATH = re.compile(
    "bundle\\.json|manifests/%s|ledger/(entries\\.jsonl|ledger\\.sqlite|objects\\.pack|task-ids\\.json)"
    "|predecessors/[0-9a-f]{32}/(entries\\.jsonl|objects\\.pack|task-ids\\.json)"
    "|checkpoints/(0|[1-9][0-9]*)\\.note|attestations/%s|report/%s" % (_NAME, _NAME, _NAME)
)


class NoBundle(Exception):
    """What was named is no bundle at all."""


class Folder:
    """A bundle as a folder. Links are never followed."""

    def __init__(self, root):
        self.root = root
        self.sizes = {}
        self.faults = []
        self._walk("")
        if "bundle.json" not in self.sizes:
            raise NoBundle("%s has no bundle.json" % root)

    def _walk(self, prefix):
        with os.scandir(os.path.join(self.root, prefix)) as found:
            items = sorted(found, key=lambda item: os.fsencode(item.name))
        for item in items:
            path = prefix + item.name
            if len(self.sizes) >= MAX_FILES:
                raise Refusal("more than %d files" % MAX_FILES)
            if item.is_dir(follow_symlinks=False) and path.count("/") < 2:
                self._walk(path + "/")
            elif item.is_file(follow_symlinks=False) and _BUNDLE_PATH.fullmatch(path):
                self.sizes[path] = item.stat(follow_symlinks=False).st_size
            else:
                self.faults.append((path, "no file of a bundle"))

    def open(self, path):
        """A binary file to read; only for paths in `sizes`."""
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(os.path.join(self.root, path), flags)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Refusal("not a regular file")
        return os.fdopen(descriptor, "rb")


class TarFile:
    """A bundle as a tar: ustar with pax records for path and size. Only headers are held in memory."""

    _BLOCK = 512

    def __init__(self, path):
        self._path = path
        self._offsets = {}
        self.sizes = {}
        self.faults = []
        self._tops = set()
        with open(path, "rb") as file:
            self._size = os.fstat(file.fileno()).st_size
            if not self._is_header(file.read(self._BLOCK)):
                raise NoBundle("%s is neither a folder nor a tar" % path)
            file.seek(0)
            try:
                self._read_members(file)
            except Refusal as refusal:
                self.faults.append(("", "the tar: %s" % refusal))
        if len(self._tops) > 1:
            self.faults.append(("", "more than one folder on top"))
        if "bundle.json" not in self.sizes:
            raise NoBundle("%s holds no bundle.json" % path)

    def open(self, path):
        """A binary file to read; only for paths in `sizes`."""
        return _Range(self._path, self._offsets[path], self.sizes[path])

    def _is_header(self, block):
        return len(block) == self._BLOCK and block[257:263] in (b"ustar\0", b"ustar ") and self._checksum_fits(block)

    def _checksum_fits(self, block):
        try:
            return int(block[148:156].strip(b" \0"), 8) == sum(block[:148]) + 8 * 32 + sum(block[156:])
        except ValueError:
            return False

    def _read_members(self, file):
        extended = {}
        while True:
            block = file.read(self._BLOCK)
            if block == bytes(self._BLOCK):
                return self._check_rest(file)
            if not self._is_header(block):
                raise Refusal("no header at byte %d" % (file.tell() - len(block)))
            kind, size = block[156:157], self._octal(block[124:136])
            if kind == b"x":
                extended = self._read_pax(file, size)
                continue
            size = self._pax_size(extended, size)
            self._add_member(kind, self._member_path(block, extended), size, file.tell())
            self._skip(file, size)
            extended = {}

    def _check_rest(self, file):
        for chunk in iter(lambda: file.read(2**16), b""):
            if chunk.strip(b"\0"):
                raise Refusal("bytes after the end")

    def _octal(self, field):
        digits = field.strip(b" \0")
        if not digits or not digits.isdigit():
            raise Refusal("a size that is no octal number")
        try:
            return int(digits, 8)
        except ValueError:
            raise Refusal("a size that is no octal number") from None

    def _skip(self, file, size):
        end = file.tell() + -(-size // self._BLOCK) * self._BLOCK
        if end > self._size:
            raise Refusal("cut short")
        file.seek(end)

    def _read_pax(self, file, size):
        if size > 2**16:
            raise Refusal("pax records of %d bytes" % size)
        start = file.tell()
        data = file.read(size)
        file.seek(start)
        self._skip(file, size)
        records = {}
        while data:
            head, _, _ = data.partition(b" ")
            length = int(head) if head.isdigit() and len(head) < 7 else 0
            record = data[len(head) + 1 : length]
            if length <= len(head) + 1 or length > len(data) or not record.endswith(b"\n") or b"=" not in record:
                raise Refusal("a pax record without its form")
            key, _, value = record[:-1].partition(b"=")
            records[key] = value
            data = data[length:]
        return records

    def _pax_size(self, extended, size):
        text_size = extended.get(b"size")
        if text_size is None:
            return size
        if not text_size.isdigit() or len(text_size) > 18:
            raise Refusal("a pax size that is no number")
        return int(text_size)

    def _member_path(self, block, extended):
        if b"path" in extended:
            raw = extended[b"path"]
        else:
            name, prefix = block[:100].partition(b"\0")[0], block[345:500].partition(b"\0")[0]
            raw = prefix + b"/" + name if prefix else name
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise Refusal("a path that is not UTF-8") from None

    def _add_member(self, kind, path, size, offset):
        top, _, inner = path.partition("/")
        self._tops.add(top)
        if len(self.sizes) >= MAX_FILES:
            raise Refusal("more than %d files" % MAX_FILES)
        if kind == b"5" and size == 0:
            return
        if kind not in (b"0", b"\0") or not top or not _BUNDLE_PATH.fullmatch(inner):
            self.faults.append((path, "no file of a bundle"))
        elif inner in self.sizes:
            self.faults.append((inner, "twice in the tar"))
        else:
            self.sizes[inner] = size
            self._offsets[inner] = offset


class _Range:
    """A part of a file that reads like a file of its own."""

    def __init__(self, path, offset, size):
        self._file = open(path, "rb")
        self._offset = offset
        self._size = size
        self._file.seek(offset)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def tell(self):
        return self._file.tell() - self._offset

    def seek(self, position):
        self._file.seek(self._offset + min(position, self._size))

    def _left(self, limit):
        left = self._size - self.tell()
        return left if limit < 0 else min(limit, left)

    def read(self, limit=-1):
        return self._file.read(self._left(limit))

    def readline(self, limit=-1):
        return self._file.readline(self._left(limit))

    def close(self):
        self._file.close()


def open_bundle(path):
    """The source of a bundle; raises NoBundle when there is none."""
    try:
        return Folder(path) if os.path.isdir(path) else TarFile(path)
    except OSError as error:
        raise NoBundle("%s: %s" % (path, error.strerror)) from None


def read_file(source, path, limit):
    """All bytes of a file, refused when it is larger than the limit."""
    if source.sizes[path] > limit:
        raise Refusal("larger than %d bytes" % limit)
    with source.open(path) as file:
        return file.read(limit + 1)


def hash_file(source, path):
    """(size, digest) of a file."""
    hasher, size = hashlib.sha256(), 0
    with source.open(path) as file:
        for chunk in iter(lambda: file.read(2**18), b""):
            hasher.update(chunk)
            size += len(chunk)
    return size, "sha256:" + hasher.hexdigest()


# ---------------------------------------------------------------------------------------------------------------
# Object packs (docs/formats/bundle.md)
# ---------------------------------------------------------------------------------------------------------------

MAX_OBJECT_SIZE = 256 * 2**20
_RECORD_HEAD = re.compile(b"([0-9a-f]{64}) (?:(redacted) )?(0|[1-9][0-9]{0,15})(?: ([0-9a-f]{64}))?\n")


class Pack:
    """The objects of one ledger, indexed by digest; their bytes stay on disk."""

    def __init__(self, source, path):
        self._source = source
        self._path = path
        self._file = source.open(path)
        self._numbers = {}
        self._offsets = array.array("Q")
        self._lengths = array.array("Q")
        self._seen = bytearray()
        self._redacted = set()
        self.faults = []

    def load(self):
        """Reads and hashes all records; what is wrong goes into `faults` as (code, message)."""
        try:
            while self._read_record():
                pass
        except Refusal as refusal:
            self.faults.append((CODE_PACK, "at byte %d: %s" % (self._file.tell(), refusal)))

    def _read_record(self):
        line = self._file.readline(200)
        if not line:
            return False
        head = _RECORD_HEAD.fullmatch(line)
        if not head or (head.group(2) is None) != (head.group(4) is None):
            raise Refusal("no record")
        raw, length = bytes.fromhex(head.group(1).decode("ascii")), int(head.group(3))
        if raw in self._numbers:
            raise Refusal("the object %s stands twice" % raw.hex())
        self._numbers[raw] = len(self._lengths)
        self._offsets.append(self._file.tell())
        self._lengths.append(length)
        self._seen.append(0)
        if head.group(2):
            self._redacted.add(raw)
        elif self._hash_bytes(length) != raw:
            self.faults.append(("OBJECT_ALTERED", "the bytes under %s are others" % raw.hex()))
        return True

    def _hash_bytes(self, length):
        hasher = hashlib.sha256()
        while length:
            chunk = self._file.read(min(length, 2**18))
            if not chunk:
                raise Refusal("cut short")
            hasher.update(chunk)
            length -= len(chunk)
        if self._file.read(1) != b"\n":
            raise Refusal("no line feed after an object")
        return hasher.digest()

    @property
    def redacted(self):
        return len(self._redacted)

    @property
    def size(self):
        return len(self._lengths)

    def number(self, digest):
        """Position of a digest's record, or None."""
        return self._numbers.get(bytes.fromhex(digest[7:]))

    def mention(self, number):
        """Marks a record as mentioned; whether it is the first time."""
        first = not self._seen[number]
        self._seen[number] = 1
        return first

    def unmentioned(self):
        """Digests of the records that nothing mentioned."""
        return ["sha256:" + raw.hex() for raw, number in self._numbers.items() if not self._seen[number]]

    def is_redacted(self, digest):
        return bytes.fromhex(digest[7:]) in self._redacted

    def read(self, digest):
        """The bytes of an object; None when it is missing, redacted or too large to be looked at."""
        number = self.number(digest)
        if number is None or self.is_redacted(digest) or self._lengths[number] > MAX_OBJECT_SIZE:
            return None
        self._file.seek(self._offsets[number])
        return self._file.read(self._lengths[number])
