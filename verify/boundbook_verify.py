#!/usr/bin/env python3
"""A second verifier of Boundbook bundles.

It was written from docs/formats.md alone and shares no code with Boundbook: what both find is found twice.
One file, standard library, Python 3.9 or later.

    python3 boundbook_verify.py BUNDLE [--key VKEY]... [--policy FILE] [--json]

BUNDLE is a folder or a tar of it. Exit status: 0 nothing found, 4 findings, 2 wrong usage or no bundle,
1 a fault of this program.
"""

import array
import base64
import binascii
import collections
import datetime
import hashlib
import hmac
import itertools
import json
import math
import operator
import os
import re
import sqlite3
import stat
import statistics
import struct
import sys
import tempfile
import unicodedata
from fractions import Fraction

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
_PLAIN_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, check_circular=False)


def _plain_json(value, data):
    """What Python's own writer makes of a value read from data, where it is sure to agree with RFC 8785: in ASCII
    text keys sort alike, and doubles print alike unless Python takes an exponent. It is far faster."""
    if not data.isascii() or _SIGNED_EXPONENT.search(data):
        return None
    return _PLAIN_WRITER.encode(value).encode("utf-8", "replace")


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
COSIGNATURE_TYPE = 4
MAX_NOTE_SIZE = 1_000_000
MAX_POLICY_SIZE = 1_000_000
MAX_COSIGNATURE_TIME = 2**63 - 1
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


def _decode_any_base64(text):
    """Standard or URL-safe base64; the latter with or without padding."""
    try:
        return _decode_base64(text)
    except Refusal:
        padded = text if text.endswith("=") else text + "=" * (-len(text) % 4)
        if "+" in text or "/" in text:
            raise
        return _decode_base64(padded.replace("-", "+").replace("_", "/"))


def _check_key_name(name):
    """Not empty, no white space, no control character, no plus sign."""
    if not name or "+" in name or any(c.isspace() or unicodedata.category(c) == "Cc" for c in name):
        raise Refusal("%s is no key name" % quote(name))


class VerifierKey:
    """A key from its text `<name>+<8 hex>+<base64 of type and key>`, of a log (type 1) or of a cosigner (type 4)."""

    def __init__(self, encoded_key):
        parts = encoded_key.split("+", 2)
        if len(parts) != 3:
            raise Refusal("a verifier key is <name>+<id>+<key>")
        name, key_id, encoded = parts
        _check_key_name(name)
        blob = _decode_base64(encoded)
        if len(blob) != 33 or blob[0] not in (ED25519_TYPE, COSIGNATURE_TYPE):
            raise Refusal("not an Ed25519 verifier key")
        if not is_hex(key_id, 8) or bytes.fromhex(key_id) != note_key_id(name, blob):
            raise Refusal("the id of the verifier key does not belong to its name and key")
        self.name = name
        self.blob = blob
        self.public_key = blob[1:]
        self.cosigns = blob[0] == COSIGNATURE_TYPE


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
    if any(c < " " and c != "\n" for c in whole):
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


_ORIGIN = re.compile("(.+)/([0-9a-f]{32})/([1-9][0-9]{0,8})")


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
    if len(origin.encode("utf-8")) > 255:
        raise Refusal("an origin of more than 255 bytes")
    if not re.fullmatch("0|[1-9][0-9]{0,19}", size_text) or int(size_text) >= 2**64:
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
_ALIAS = text(pattern="[0-9a-f]{16}")
TIME = text(pattern="[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z")
COUNT = integer(0)
SECONDS = number(0)


# ---------------------------------------------------------------------------------------------------------------
# The protocol inside a manifest (docs/formats/protocol.md)
# ---------------------------------------------------------------------------------------------------------------

STAGES = ("generate", "grade")
PHASES = (
    "queue", "connect", "headers", "body", "spawn", "running", "collect", "between", "environment_setup", "agent_setup",
    "agent_execution", "verifier",
)  # fmt: skip
CAUSES = (
    "connection_refused", "connection_lost", "time_limit", "queue_limit", "http_status", "body_not_json", "body_error",
    "body_no_choice", "body_malformed", "body_too_large", "spawn_failed", "exit_status", "killed_by_signal",
    "candidate_missing", "report_missing", "report_invalid", "process_gone", "grader_fault", "storage_fault",
    "stream_cut", "model_differs", "settings_differ", "idle_limit",
    "trial_exception", "trial_mismatch", "trial_unreadable", "room_damaged",
)  # fmt: skip
HOST_EVENTS = ("boot_changed",)
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
        "first_token": boolean,
        "oom_kill": boolean,
        "host_event": one_or_more(one_of(*HOST_EVENTS)),
        "exception": one_or_more(text(1)),
        "text": text(1),
    },
)
_STEP = members(
    {"argv": _ARGV, "wall_s": _DURATION, "output_bytes": _BYTES},
    {"env": _ENVIRONMENT, "idle_s": _DURATION, "stop": _ARGV},
)
_ARTIFACT = members(
    {"name": text(pattern="[a-z0-9][a-z0-9._-]{0,63}"), "file": text(1), "max_bytes": integer(1, 2**28)}
)
_CGROUP = members({"path": text(1, 4096, pattern="(?s:/.*)")}, {"memory_bytes": integer(2**24, 2**40)})
OPERATORS_WORD = "the identity of the weights rests on the operator's word"
_READY = members({"path": text(pattern="(?s:/.*)"), "timeout_s": _DURATION})
_ADDRESS = text(0, 300, r"https?://[A-Za-z0-9._:\[\]-]+")
_WATCHED = {
    "health": members(
        {"every_s": _DURATION, "timeout_s": _DURATION, "failures": integer(1, 1000)}, {"path": text(pattern="(?s:/.*)")}
    ),
    "canary": members(
        {
            "prompts": list_of(text(1, 20000), 1, 16),
            "max_tokens": integer(1, 512),
            "logprobs": integer(0, 20),
            "logprob_tolerance": number(0, 1000),
        }
    ),
}
_MANAGED_SERVICE = members(
    {
        "argv": _ARGV,
        "ready": _READY,
        "restarts": integer(0, 1000),
        "stop_grace_s": _DURATION,
        "gpus": COUNT,
    },
    {"env": _ENVIRONMENT, "max_up": integer(1, 1000), **_WATCHED},
)
_EXTERNAL_SERVICE = members(
    {
        "external": members(
            {"origin": either(_ADDRESS, map_of(_ADDRESS, _ID)), "accepted": one_of(OPERATORS_WORD)},
            {"api_key_env": text(pattern="[A-Za-z_][A-Za-z0-9_]*")},
        ),
        "ready": _READY,
        "gpus": COUNT,
    },
    _WATCHED,
)


def _service(value):
    is_external = type(value) is dict and "external" in value
    return _EXTERNAL_SERVICE(value) if is_external else _MANAGED_SERVICE(value)


_TRIAL = members(
    {"argv": _ARGV, "config": map_of(lambda value: None), "wall_s": _DURATION, "output_bytes": _BYTES},
    {"env": _ENVIRONMENT},
)
_RUNNERS = {
    "openai": members(
        {
            "adapter": one_of("openai"),
            "endpoint": one_of("chat", "completions"),
            "service": _service,
            "limits": members({"request_s": _DURATION, "queue_wait_s": number(0, 86400), "response_bytes": _BYTES}),
            "sources": map_of(_PATH, _ID),
        },
        {"stream": boolean},
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
        },
        {"artifacts": list_of(_ARTIFACT, 0, 32), "cgroup": _CGROUP},
    ),
    "harbor": members(
        {
            "adapter": one_of("harbor"),
            "trial": _TRIAL,
            "grace_s": _DURATION,
            "tasks": members({"source": _ID, "folder": text(1), "digest": text(1)}),
            "candidate": members({"file": text(1), "when_absent": one_of("empty", "failure")}),
            "model_service": one_of(OPERATORS_WORD),
            "gpus": COUNT,
            "sources": map_of(_PATH, _ID),
        },
        {
            "regrade": _TRIAL,
            "stop": members({"argv": _ARGV, "wall_s": _DURATION}),
            "version": members({"argv": _ARGV, "output": text(1)}),
        },
    ),
}
_GRADERS = {
    "exact": members({"kind": one_of("exact"), "answer": text(1)}),
    "integer": members({"kind": one_of("integer"), "answer": text(1)}),
    "boxed": members({"kind": one_of("boxed"), "answer": text(1), "compare": one_of("exact", "integer")}),
    "report": members(
        {"kind": one_of("report"), "reward": members({"min": number(), "max": number()})},
        {"expected_tests": text(1), "report_schema": _PATH},
    ),
    "reward": members(
        {"kind": one_of("reward"), "key": text(1, 200), "reward": members({"min": number(), "max": number()})}
    ),
}
_READING_GRADERS = {kind: _GRADERS[kind] for kind in ("exact", "integer", "boxed")}
_COMMAND_GRADER = members(
    {
        "kind": one_of("report"),
        "reward": members({"min": number(), "max": number()}),
        "grade": _STEP,
        "grace_s": _DURATION,
        "sources": map_of(_PATH, _ID),
    },
    {"expected_tests": text(1), "report_schema": _PATH, "cgroup": _CGROUP},
)
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
    {
        "reasoning": one_of("on", "off"),
        "execution": map_of(either(text(), number(), boolean)),
        "loop_stop": members(
            {
                "unit": one_of("words", "characters"),
                "length": integer(1, 256),
                "repeats": integer(2, 65536),
                "window": integer(2, 65536),
            }
        ),
    },
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
    for condition in protocol["conditions"].values():
        for template in condition["prompt"].values():
            parse_template(template)
        reward = condition["grader"].get("reward")
        if reward and not (reward["min"] < reward["max"] and reward["min"] <= 0 <= reward["max"]):
            raise Refusal("a range of rewards that is empty or has no zero")
        stop = condition.get("loop_stop")
        if stop and not protocol["runner"].get("stream", False):
            raise Refusal("a stop rule for answers that are not streamed")
        if stop and stop["window"] < stop["length"] + stop["repeats"] - 1:
            raise Refusal("a stop rule that can never fire")


# ---------------------------------------------------------------------------------------------------------------
# Manifests (docs/formats/manifest.md)
# ---------------------------------------------------------------------------------------------------------------

MAX_MANIFEST_SIZE = 64 * 2**20
MANIFEST_NAME = re.compile("[a-z0-9][a-z0-9._-]{0,63}\\.r[0-9]+\\.[0-9a-f]{12}\\.json")
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
        self.bindings = own_bindings(value)


def parse_manifest(data, file_name=None):
    """Reads a manifest file and holds it against every rule that needs no other file."""
    value = parse_canonical(data)
    problem = MANIFEST_FORM(value)
    if problem:
        raise Refusal(problem.lstrip(": "))
    digest = digest_of(data)
    own_name = "%s.r%d.%s.json" % (value["name"], value["revision"], digest[7:19])
    if file_name is not None and MANIFEST_NAME.fullmatch(file_name) and file_name != own_name:
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
    if (value["previous"] is None) != (value["sequence"] == 1):
        raise Refusal("/previous is null exactly in the first manifest of a workspace")
    lists = [(name, binding["digest"]) for name, binding in own_bindings(value).items() if name.startswith("tasks/")]
    if [(use["binding"], use["digest"]) for use in value["task_use"]] != lists:
        raise Refusal("/task_use is not about the task files that are bound")
    _check_amendment(value)
    return Manifest(value, digest)


def _check_amendment(value):
    """Reason and exposure stand exactly where something is superseded."""
    superseded, exposure = value["supersedes"] is not None, value["exposure"]
    if (value["reason"] is not None) != superseded or (exposure is not None) != superseded:
        raise Refusal("reason and exposure stand exactly where something is superseded")
    if exposure is None:
        return
    if exposure["settled"] > exposure["slots_run"] or (exposure["bounds"] and not exposure["unblinded"]):
        raise Refusal("/exposure contradicts itself")
    if any(bound["lower"] > bound["upper"] for bound in exposure["bounds"].values()):
        raise Refusal("/exposure has a bound that is none")


def own_bindings(value):
    return {binding["name"]: binding for binding in value["bindings"]}


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


def check_descent(manifest, member, other):
    """Holds a manifest against the one that it names by `parent` or `supersedes`; raises Refusal."""
    value, before = manifest.value, other.value
    if value["sequence"] <= before["sequence"] or value["created"] < before["created"]:
        raise Refusal("it is not later than the manifest that it names")
    if member == "parent":
        _check_child(manifest, other)
        return
    if value["name"] != before["name"] or value["revision"] <= before["revision"]:
        raise Refusal("it is no later revision of the plan that it supersedes")
    told, known = value["exposure"], before["exposure"]
    if told is not None and known is not None:
        fewer = told["slots_run"] < known["slots_run"] or told["settled"] < known["settled"]
        if fewer or (known["unblinded"] and not told["unblinded"]):
            raise Refusal("it tells of less exposure than the plan that it supersedes")


def _check_child(manifest, parent):
    """A manifest and its parent differ in what was added, and in nothing else."""
    value, before = manifest.value, parent.value
    same = ("protocol", "protocol_source", "supersedes", "reason", "exposure")
    if any(canonical_text(value[name]) != canonical_text(before[name]) for name in same):
        raise Refusal("it changes what its parent says")
    if before["plan"] is not None and value["plan"] != before["plan"]:
        raise Refusal("it has another plan than its parent")
    if any(manifest.bindings.get(name) != binding for name, binding in parent.bindings.items()):
        raise Refusal("it lacks a binding of its parent, or has another one")
    for item, earlier in zip(value["pending_items"], before["pending_items"]):
        if earlier["evidence"] is not None and item["evidence"] != earlier["evidence"]:
            raise Refusal("an item is closed by other evidence than in its parent")


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
        self.ids = []
        self.lines = []

    def add(self, task, line):
        if not is_task_id(task):
            raise Refusal("%s is no task id" % quote(str(task)))
        if task in self.positions:
            raise Refusal("the task %s stands twice" % quote(task))
        self.positions[task] = len(self.lines)
        self.ids.append(task)
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
        if b"\\u" in line:
            canonical_json(value)
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
    """The tasks of a redacted file: ids without fields."""
    tasks = TaskSet()
    for task in ids:
        if whole is not None and task not in whole.positions:
            raise Refusal("the task %s is not in the larger set" % quote(task))
        tasks.add(task, None)
    return tasks


def _join_sets(parts):
    """The tasks of several sets; without fields when one of them has none."""
    tasks = TaskSet()
    redacted = any(None in part.lines for part in parts)
    for part in parts:
        for task, line in zip(part.ids, part.lines):
            tasks.add(task, None if redacted else line)
    return tasks


def read_task_sets(protocol, read_file, redacted_ids):
    """All task sets by name; read_file(set) gives the bytes of a set's file, redacted_ids {set: ids} replaces it."""
    declared, done = protocol["task_sets"], {}

    def resolve(name):
        if name in done:
            return done[name]
        task_set = declared[name]
        if "union_of" in task_set:
            tasks = _join_sets([resolve(part) for part in task_set["union_of"]])
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


def _needed_fields(condition, runner):
    """The fields that a condition and a runner need of a task, each with its check."""
    prompt, grader = condition["prompt"], condition["grader"]
    needed = []
    if runner.get("adapter") == "harbor":
        needed += [(runner["tasks"]["folder"], _is_inner_path), (runner["tasks"]["digest"], is_digest)]
    for template in [prompt["user"]] + ([prompt["system"]] if "system" in prompt else []):
        names = [content for kind, content in parse_template(template) if kind == "field"]
        needed += [(name, lambda value: value is not None) for name in names]
    comparison = grader.get("compare", grader["kind"])
    if comparison == "exact":
        needed.append((grader["answer"], lambda value: reference_text(value) not in (None, "")))
    elif comparison == "integer":
        needed.append((grader["answer"], lambda value: _WHOLE_NUMBER.fullmatch(reference_text(value) or "")))
    elif "expected_tests" in grader:
        needed.append((grader["expected_tests"], _is_test_list))
    return needed


def reference_text(value):
    """The trimmed text of a reference answer, or None for something that is neither text nor integer."""
    if type(value) is int:
        return str(value)
    return value.strip(_TRIMMED) if type(value) is str else None


def _is_inner_path(value):
    if type(value) is not str or re.search("[\\\\\x00-\x1f\x7f-\x9f]", value):
        return False
    return not any(part in ("", ".", "..") for part in value.split("/"))


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
        self._positions = {}
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
            needed = [item for condition in conditions for item in _needed_fields(condition, self.protocol.get("runner", {}))]
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

    def position(self, key):
        """What orders the keys of planned slots as the expansion does."""
        queue = key["queue"]
        row = (key["arm"], key["training_seed"], key["evaluation_seed"])
        if queue not in self._positions:
            self._positions[queue] = {row: at for at, row in enumerate(self.rows(queue))}
        return self.queues.index(queue), self._positions[queue][row], self.tasks(queue).positions[key["task"]], key["rep"]

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
            tasks = [canonical_text(task) for task in self.tasks(queue).ids]
            for row in self.rows(queue):
                prefix = canonical_text([queue, *row])[1:-1]
                for task in tasks:
                    lines = [_slots_line("%s,%s,%d]" % (prefix, task, rep)) for rep in reps]
                    hasher.update(b"".join(lines))
                    count += len(lines)
        return {"count": count, "digest": "sha256:" + hasher.hexdigest()}


    def select(self, selector):
        """Number and digest of the slots that a selector accepts."""
        if not set(selector) <= {"queue", "arm", "training_seed", "evaluation_seed", "task", "slot"}:
            return None

        def accepts(field, value):
            return field not in selector or value in selector[field]

        found = []
        for queue in self.queues:
            tasks = [task for task in self.tasks(queue).ids if accepts("task", task)] if accepts("queue", queue) else []
            reps = range(self.protocol["queues"][queue]["reps"])
            for arm, seed, evaluation_seed in self.rows(queue) if tasks else []:
                fits = accepts("training_seed", "null" if seed is None else str(seed))
                if fits and accepts("arm", arm) and accepts("evaluation_seed", str(evaluation_seed)):
                    prefix = [queue, arm, seed, evaluation_seed]
                    ids = [slot_id(prefix + [task, rep]) for task in tasks for rep in reps]
                    found += [one for one in ids if accepts("slot", one)]
        found.sort()
        return {"count": len(found), "digest": digest_of("".join(one + "\n" for one in found).encode("ascii"))}


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
MAX_PATTERN_DEPTH = 50
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
        if self.depth > MAX_PATTERN_DEPTH:
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
        if not all(_condition_holds(name, wanted, signals.get(name)) for name, wanted in when.items() if name != "text"):
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
    if name in ("service_alive", "first_token", "oom_kill"):
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
_ATTESTATION_NAME = "[0-9a-f]{16,64}\\.[A-Za-z0-9_-]{1,40}\\.(?:dsse\\.json|tsq|tsr)"
_BUNDLE_PATH = re.compile(
    "bundle\\.json|manifests/%s|ledger/(entries\\.jsonl|ledger\\.sqlite|objects\\.pack|task-ids\\.json)"
    "|predecessors/[0-9a-f]{32}/(entries\\.jsonl|objects\\.pack|task-ids\\.json)"
    "|checkpoints/(0|[1-9][0-9]{0,15})\\.note|attestations/%s|report/%s" % (_NAME, _ATTESTATION_NAME, _NAME)
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

    def _walk(self, prefix):
        with os.scandir(os.path.join(self.root, prefix)) as found:
            items = sorted(found, key=lambda item: os.fsencode(item.name))
        for item in items:
            path = prefix + item.name
            if len(self.sizes) + len(self.faults) >= MAX_FILES:
                self.faults.append((prefix, "more than %d files" % MAX_FILES))
                return
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
        if len(self.sizes) + len(self.faults) >= MAX_FILES:
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
            self.faults.append(("BUNDLE_FORM", "at byte %d: %s" % (self._file.tell(), refusal)))

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

    def length(self, digest):
        """Size of an object; None when it is missing or redacted."""
        number = self.number(digest)
        return None if number is None or self.is_redacted(digest) else self._lengths[number]

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


# ---------------------------------------------------------------------------------------------------------------
# Findings, and what was not checked
# ---------------------------------------------------------------------------------------------------------------

MAX_LISTED = 1000


class Outcome:
    """What a verification found. Counts everything, keeps the first findings."""

    def __init__(self):
        self.count = 0
        self.findings = []
        self._unchecked = {}

    def find(self, code, place, message):
        self.count += 1
        if len(self.findings) < MAX_LISTED:
            self.findings.append({"code": code, "place": place, "message": message})

    def skip(self, what):
        """Notes something that could not be checked, once or many times."""
        self._unchecked[what] = self._unchecked.get(what, 0) + 1

    def unchecked(self):
        return [what if times == 1 else "%s (%d times)" % (what, times) for what, times in self._unchecked.items()]


class Violation(Exception):
    """An entry that breaks a rule; it changes no state."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def require(condition, message, code="UNLAWFUL"):
    if not condition:
        raise Violation(code, message)


# ---------------------------------------------------------------------------------------------------------------
# Entries (docs/formats/ledger.md)
# ---------------------------------------------------------------------------------------------------------------

MAX_ENTRY_SIZE = 60_000
_KEY = members(
    {
        "queue": text(),
        "arm": text(),
        "training_seed": nullable(integer()),
        "evaluation_seed": integer(),
        "task": text(),
        "rep": COUNT,
    }
)
_BASIS = by_member(
    "kind",
    {
        "report": members({"kind": one_of("report"), "attempt": HEX32, "report": DIGEST}),
        "model_failure": members({"kind": one_of("model_failure"), "attempt": HEX32}),
    },
)
_UNRESOLVED = one_of("undetermined", "limit_reached")
_SIGNALS = members(
    {
        "stage": one_of(*STAGES),
        "phase": one_of(*PHASES),
        "cause": one_of(*CAUSES),
        "http_status": nullable(integer()),
        "embedded_status": nullable(integer()),
        "exit_status": nullable(integer()),
        "signal": nullable(text()),
        "service_alive": nullable(boolean),
        "exception": nullable(text()),
        "text": nullable(text()),
    },
    {"first_token": boolean, "oom_kill": boolean, "host_event": one_of(*HOST_EVENTS)},
)
_RESULT = by_member(
    "kind",
    {
        "candidate": members({"kind": one_of("candidate"), "candidate": DIGEST}),
        "report": members({"kind": one_of("report"), "candidate": DIGEST, "report": DIGEST, "value": number()}),
        "failure": members({"kind": one_of("failure"), "signals": _SIGNALS}),
    },
)
_USAGE = nullable(members({"prompt_tokens": nullable(integer()), "completion_tokens": nullable(integer())}))
_FRACTION = text(pattern="1|0\\.[0-9]{0,8}[1-9]")
_SLOT_SET = members({"count": COUNT, "digest": DIGEST})
_PROCESS = members({"boot_id": text(), "pid": integer(), "started": text()})
_GRADER_SOURCE = members(
    {"kind": one_of("file", "tree"), "files": integer(1), "size": integer(0), "digest": DIGEST}
)
_CLOSED = by_member(
    "kind",
    {
        "settled": members({"kind": one_of("settled"), "value": number(), "basis": _BASIS}),
        "unresolved": members({"kind": one_of("unresolved"), "reason": _UNRESOLVED}),
    },
)
_FRAME = {"seq": COUNT, "prev": nullable(HEX64), "time": TIME}


def _entry(kind, optional=None, /, **own):
    return members({**_FRAME, "type": one_of(kind), **own}, optional)


_ENTRY_FORMS = {
    "ledger.opened": _entry(
        "ledger.opened",
        ledger=HEX32,
        incarnation=integer(1),
        manifest=DIGEST,
        manifest_object=DIGEST,
        plan=members({"count": integer(), "digest": DIGEST}),
        task_objects=map_of(DIGEST),
        carries=nullable(
            members(
                {
                    "size": integer(1),
                    "root": HEX64,
                    "manifest": DIGEST,
                    "ledger": HEX32,
                    "again": COUNT,
                    "dropped": COUNT,
                }
            )
        ),
        restored=nullable(
            members(
                {
                    "size": integer(1),
                    "root": nullable(HEX64),
                    "leaf": nullable(HEX64),
                    "note": nullable(text(0, 16384)),
                    "reason": text(1, 4000),
                }
            )
        ),
        tool=members({"name": one_of("boundbook"), "version": text()}),
    ),
    "slot.carried": _entry(
        "slot.carried", slot=HEX32, key=_KEY, closed_by=COUNT, attempts=integer(1), outcome=_CLOSED
    ),
    "gate.passed": _entry(
        "gate.passed",
        {"heartbeat_s": integer(1)},
        session=HEX32,
        manifest=DIGEST,
        files=integer(),
        bytes=integer(),
        process=_PROCESS,
        host=members({"node": text(), "platform": text(), "arch": text()}, {"slurm_job": text(0, 100)}),
        selection=map_of(either(text(), integer())),
    ),
    "gate.refused": _entry(
        "gate.refused",
        manifest=DIGEST,
        mismatches=list_of(
            members(
                {
                    "binding": text(),
                    "path": text(),
                    "expected": nullable(text()),
                    "actual": nullable(text()),
                    "reason": text(),
                }
            ),
            0,
            100,
        ),
        total=integer(),
    ),
    "service.started": _entry(
        "service.started",
        session=HEX32,
        service=text(),
        model=text(),
        pid=integer(),
        port=integer(),
        start=integer(),
        effective=nullable(DIGEST),
        seconds=SECONDS,
    ),
    "service.attached": _entry(
        "service.attached",
        session=HEX32,
        service=text(),
        model=text(),
        origin=text(),
        accepted=one_of(OPERATORS_WORD),
        effective=nullable(DIGEST),
        seconds=SECONDS,
    ),
    "service.described": _entry(
        "service.described",
        session=HEX32,
        service=text(),
        model=text(),
        at=one_of("start", "end"),
        effective=DIGEST,
        compared_with=COUNT,
        changed=list_of(text(0, 1000), 0, 50),
        total=COUNT,
    ),
    "canary.recorded": _entry(
        "canary.recorded",
        session=HEX32,
        service=text(),
        model=text(),
        at=one_of("start", "end"),
        answers=DIGEST,
        compared_with=nullable(COUNT),
        verdict=one_of("reference", "same", "differs"),
        largest_logprob_difference=nullable(number(0)),
    ),
    "service.stopped": _entry(
        "service.stopped",
        session=HEX32,
        service=text(),
        model=text(),
        reason=one_of("done", "died", "run_ended", "bindings_changed", "unresponsive"),
        exit_status=nullable(integer()),
        signal=nullable(text()),
        seconds=SECONDS,
        gpus=integer(),
    ),
    "attempt.started": _entry(
        "attempt.started",
        session=HEX32,
        attempt=HEX32,
        slot=HEX32,
        key=_KEY,
        kind=one_of("first", "replacement", "regrade"),
        of=nullable(HEX32),
        sampling_seed=COUNT,
        candidate=nullable(DIGEST),
        request=nullable(DIGEST),
    ),
    "stage.finished": _entry(
        "stage.finished",
        {"first_token_seconds": SECONDS},
        attempt=HEX32,
        slot=HEX32,
        stage=one_of(*STAGES),
        result=_RESULT,
        objects=map_of(DIGEST),
        usage=_USAGE,
        finish_reason=nullable(text()),
        seconds=SECONDS,
        queue_seconds=SECONDS,
    ),
    "attempt.finished": _entry(
        "attempt.finished", attempt=HEX32, slot=HEX32, outcome=one_of("report", "failure"), seconds=SECONDS
    ),
    "attempt.recovered": _entry(
        "attempt.recovered",
        attempt=HEX32,
        slot=HEX32,
        session=HEX32,
        found=one_of("candidate", "nothing", "end"),
        evidence=members(
            {
                "reason": one_of("boot_changed", "process_gone", "pid_reused", "same_process", "abandoned"),
                "boot_id": text(),
                "pid": integer(),
            }
        ),
    ),
    "attribution.recorded": _entry(
        "attribution.recorded",
        attempt=HEX32,
        slot=HEX32,
        attribution=one_of(*ATTRIBUTIONS),
        by=one_of("rule", "adjudicator"),
        rule=nullable(text()),
        late=boolean,
        reason=nullable(text(0, 4000)),
    ),
    "slot.settled": _entry("slot.settled", slot=HEX32, value=number(), basis=_BASIS),
    "slot.unresolved": _entry("slot.unresolved", slot=HEX32, reason=_UNRESOLVED),
    "run.paused": _entry(
        "run.paused",
        session=HEX32,
        reason=one_of(
            "finished", "limit", "signal", "breaker", "disk_full", "service_failed", "service_changed",
            "bindings_changed", "fault",
        ),
        detail=nullable(text(0, 2000)),
    ),
    "unblinded": _entry(
        "unblinded",
        partial=boolean,
        planned=integer(),
        settled=integer(),
        unresolved=integer(),
        pending=integer(),
    ),
    "checkpoint": _entry(
        "checkpoint",
        size=integer(1),
        root=HEX64,
        note=nullable(text(0, 16384)),
        timestamps=list_of(DIGEST, 0, 100),
    ),
    "regrading.opened": _entry(
        "regrading.opened",
        {"command": members({"process": _PROCESS, "sources": map_of(_GRADER_SOURCE)}, {"schema": DIGEST})},
        regrading=HEX32,
        grader=DIGEST,
        conditions=list_of(text(), 1, 1000),
        reason=text(1, 4000),
        slots=members({"count": integer(1), "digest": DIGEST}),
    ),
    "regrading.resumed": _entry("regrading.resumed", regrading=HEX32, process=_PROCESS),
    "regrading.recorded": _entry(
        "regrading.recorded",
        {"stage": members({"objects": map_of(DIGEST), "finish_reason": nullable(text()), "seconds": SECONDS})},
        regrading=HEX32,
        slot=HEX32,
        candidate=DIGEST,
        before=members({"value": number(), "report": DIGEST}),
        result=by_member(
            "kind",
            {
                "graded": members({"kind": one_of("graded"), "value": number(), "report": DIGEST}),
                "truncated": members({"kind": one_of("truncated")}),
                "failed": members({"kind": one_of("failed"), "signals": _SIGNALS}),
            },
        ),
    ),
    "regrading.closed": _entry(
        "regrading.closed",
        {"failed": integer(0)},
        regrading=HEX32,
        changed=integer(0),
        same=integer(0),
        truncated=integer(0),
    ),
    "recheck.declared": _entry(
        "recheck.declared", recheck=HEX32, session=HEX32, fraction=_FRACTION, stopped=_SLOT_SET, sample=_SLOT_SET
    ),
    "recheck.started": _entry("recheck.started", recheck=HEX32, session=HEX32, slot=HEX32, request=DIGEST),
    "recheck.finished": _entry(
        "recheck.finished",
        {"first_token_seconds": SECONDS},
        recheck=HEX32,
        session=HEX32,
        slot=HEX32,
        result=by_member(
            "kind",
            {
                "graded": members(
                    {"kind": one_of("graded"), "candidate": DIGEST, "report": DIGEST, "value": number(), "before": number()}
                ),
                "failure": members({"kind": one_of("failure"), "signals": _SIGNALS}),
            },
        ),
        objects=map_of(DIGEST),
        usage=_USAGE,
        finish_reason=nullable(text()),
        seconds=SECONDS,
        queue_seconds=SECONDS,
    ),
    "recheck.closed": _entry(
        "recheck.closed", recheck=HEX32, recovered=COUNT, not_recovered=COUNT, failed=COUNT
    ),
    "session.alive": _entry("session.alive", session=HEX32),
    "account.recorded": _entry(
        "account.recorded",
        source=one_of("slurm"),
        job=text(1, 100),
        seconds=integer(0),
        gpus=integer(0),
        object=DIGEST,
    ),
    "deviation.noted": _entry(
        "deviation.noted",
        text=text(1, 4000),
        selector=map_of(list_of(text())),
        slots=members({"count": integer(1), "digest": DIGEST}),
    ),
    "amended": _entry("amended", successor=DIGEST, revision=integer(1), reason=text(1, 4000)),
    "adjudication.opened": _entry(
        "adjudication.opened",
        round=HEX32,
        commitment=DIGEST,
        items=integer(1),
        duplicates=integer(0),
        revises=boolean,
    ),
    "verdict.committed": _entry("verdict.committed", round=HEX32, alias=_ALIAS, commitment=DIGEST),
    "adjudication.revealed": _entry("adjudication.revealed", round=HEX32, secret=HEX64),
    "verdict.opened": _entry(
        "verdict.opened",
        round=HEX32,
        alias=_ALIAS,
        attempt=HEX32,
        slot=HEX32,
        copy=integer(0, 1),
        verdict=one_of(*ATTRIBUTIONS),
        reason=text(1, 4000),
        nonce=HEX64,
    ),
    "adjudication.closed": _entry(
        "adjudication.closed",
        round=HEX32,
        verdicts=integer(0),
        pairs=integer(0),
        agreeing=integer(0),
        abandoned=nullable(text(1, 1000)),
    ),
}
ENTRY_FORM = by_member("type", _ENTRY_FORMS)


def mentioned_objects(entry):
    """Digests of the objects that an entry names, in the order of its canonical bytes."""
    kind = entry["type"]
    if kind == "ledger.opened":
        tasks = entry["task_objects"]
        return [entry["manifest_object"]] + [tasks[name] for name in _in_utf16_order(tasks)]
    if kind in ("service.started", "service.attached", "service.described"):
        found = [entry["effective"]]
    elif kind == "canary.recorded":
        found = [entry["answers"]]
    elif kind == "attempt.started":
        found = [entry["candidate"], entry["request"]]
    elif kind == "stage.finished":
        objects, result = entry["objects"], entry["result"]
        found = [objects[name] for name in _in_utf16_order(objects)] + [result.get("candidate"), result.get("report")]
    elif kind == "slot.settled":
        found = [entry["basis"].get("report")]
    elif kind == "regrading.opened":
        found = [entry.get("command", {}).get("schema"), entry["grader"]]
    elif kind == "regrading.recorded":
        objects = entry.get("stage", {}).get("objects", {})
        found = [entry["before"]["report"], entry["candidate"], entry["result"].get("report")]
        found += [objects[name] for name in _in_utf16_order(objects)]
    elif kind == "recheck.started":
        found = [entry["request"]]
    elif kind == "recheck.finished":
        objects, result = entry["objects"], entry["result"]
        found = [objects[name] for name in _in_utf16_order(objects)] + [result.get("candidate"), result.get("report")]
    elif kind == "account.recorded":
        found = [entry["object"]]
    elif kind == "checkpoint":
        found = entry["timestamps"]
    else:
        found = []
    return [digest for digest in found if digest is not None]


# ---------------------------------------------------------------------------------------------------------------
# Evidence: requests, answers, grading (docs/formats/evidence.md)
# ---------------------------------------------------------------------------------------------------------------


class Answer:
    """What the body of an answer is: a text, or a cause of failure; and what it says of itself."""

    def __init__(self, body, endpoint, model_name):
        self.cause = None
        self.text = None
        self.prompt_tokens = None
        self.completion_tokens = None
        self.finish_reason = None
        self.error_word = None
        self.error = body_error(body)
        self.first_token = None
        self.stopped_at = None
        try:
            self.value = parse_json(body)
        except Refusal:
            self.value = None
            head = body[:64].lstrip(b"\t\n\v\f\r \xa0")
            self.cause = "body_malformed" if head[:1] in (b"{", b"[") else "body_not_json"
            return
        self.cause = self._read(endpoint, model_name)

    def _read(self, endpoint, model_name):
        """Fills in the answer; gives the cause of failure or None."""
        value = self.value
        if type(value) is dict and value.get("error") is not None:
            return "body_error"
        if value is None:
            return "body_no_choice"
        if type(value) is not dict or not self._has_envelope(value):
            return "body_malformed"
        choices = value.get("choices")
        if not choices:
            return "body_no_choice"
        if len(choices) > 1 or value["model"] != model_name:
            return "body_malformed"
        return self._read_choice(choices[0], endpoint)

    def _has_envelope(self, value):
        usage, choices = value.get("usage"), value.get("choices")
        if type(value.get("model")) is not str or type(choices) not in (list, type(None)):
            return False
        if usage is None:
            return True
        if type(usage) is not dict:
            return False
        counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
        if any(count is not None and COUNT(count) for count in counts):
            return False
        self.prompt_tokens, self.completion_tokens = counts
        return True

    def _read_choice(self, choice, endpoint):
        if type(choice) is not dict or nullable(text(0, 100))(choice.get("finish_reason")):
            return "body_malformed"
        content, reasoning = None, []
        if endpoint == "chat":
            message = choice.get("message")
            if type(message) is not dict:
                return "body_malformed"
            content, *reasoning = [message.get(name) for name in ("content", "reasoning_content", "reasoning")]
            if any(type(part) not in (str, type(None)) for part in [content, *reasoning]):
                return "body_malformed"
        elif type(choice.get("text")) is not str:
            return "body_malformed"
        reason = choice.get("finish_reason")
        if reason in ("abort", "error"):
            self.error_word = reason
            return "body_error"
        if reason is None and self.completion_tokens is None:
            return "body_malformed"
        self.finish_reason = reason
        if endpoint != "chat":
            self.text = choice["text"]
        elif content is not None:
            self.text = content
        elif reason == "length" or any(part is not None for part in reasoning):
            self.text = ""
        return "body_malformed" if self.text is None else None


LOOP_STOP = "loop_stop"
_GIVEN_UP = ("abort", "error")


def stream_events(body):
    """(data, offset of the end) of each event of a text/event-stream; a line ends with LF or CR LF."""
    offset, data = 0, []
    for index, line in enumerate(body.split(b"\n")[:-1]):
        offset += len(line) + 1
        if index == 0 and line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
        if line.endswith(b"\r"):
            line = line[:-1]
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                data.append(value[1:] if value.startswith(b" ") else value)
        else:
            if data:
                yield b"\n".join(data), offset
            data = []


class LoopWatch:
    """The declared stop rule: one n-gram of units stands `repeats` times within the last `window` units."""

    def __init__(self, rule):
        self._words = rule["unit"] == "words"
        self._n, self._repeats, self._window = rule["length"], rule["repeats"], rule["window"]
        self._units = collections.deque()
        self._counts = collections.Counter()
        self._rest = ""
        self.fired = False

    def feed(self, added):
        if self._words:
            *units, self._rest = re.split("[\t-\r ]", self._rest + added)
            for unit in units:
                if unit:
                    self._take(unit)
            return
        whole, self._rest = self._rest + added, ""
        if whole and "\ud800" <= whole[-1] <= "\udbff":
            whole, self._rest = whole[:-1], whole[-1]
        for unit in whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"):
            self._take(unit)

    def _take(self, unit):
        if len(self._units) == self._window:
            oldest = tuple(itertools.islice(self._units, self._n))
            self._counts[oldest] -= 1
            if not self._counts[oldest]:
                del self._counts[oldest]
            self._units.popleft()
        self._units.append(unit)
        if len(self._units) < self._n:
            return
        gram = tuple(itertools.islice(reversed(self._units), self._n))[::-1]
        self._counts[gram] += 1
        if self._counts[gram] >= self._repeats:
            self.fired = True


def settings_of(decoding, seed):
    """What a server that echoes its settings must say."""
    names = ("temperature", "top_p", "min_p", "max_tokens", "presence_penalty", "frequency_penalty")
    settings = {name: decoding[name] for name in names if name in decoding}
    settings.update(seed=seed, n_predict=decoding["max_tokens"])
    if "repetition_penalty" in decoding:
        settings["repeat_penalty"] = decoding["repetition_penalty"]
    if decoding["top_k"] > 0:
        settings["top_k"] = decoding["top_k"]
    return settings


def _single(value):
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def echoes_otherwise(chunk, settings):
    """Whether a chunk says that it was generated with another setting."""
    echo = chunk.get("generation_settings")
    if type(echo) is not dict:
        verbose = chunk.get("__verbose")
        echo = verbose.get("generation_settings") if type(verbose) is dict else None
    if type(echo) is not dict:
        return False
    for name, asked in settings.items():
        said = echo.get(name)
        if type(said) not in (int, float):
            continue
        exact_ = name in ("top_k", "seed", "max_tokens", "n_predict")
        if (said != asked) if exact_ else (_single(said) != _single(asked)):
            return True
    return False


class StreamedAnswer:
    """What a kept stream comes to; the same members as an Answer."""

    def __init__(self, body, endpoint, model_name, loop_stop, settings):
        self.cause = None
        self.text = None
        self.prompt_tokens = None
        self.completion_tokens = None
        self.finish_reason = None
        self.error_word = None
        self.error = None
        self.first_token = False
        self.stopped_at = None
        self._endpoint = endpoint
        self._model_name = model_name
        self._settings = settings
        self._watches = [LoopWatch(loop_stop) for _ in range(2)] if loop_stop else []
        self._content = []
        self._read(body)

    def _read(self, body):
        events = 0
        for data, end in stream_events(body):
            if not data:
                continue
            events += 1
            if data.strip(b"\t\n\v\f\r \xa0") == b"[DONE]":
                break
            self.cause = self._take(data, end)
            if self.cause or self.stopped_at is not None:
                break
        if events == 0:
            plain = Answer(body, self._endpoint, self._model_name)
            self.cause, self.error, self.error_word = plain.cause or "body_malformed", plain.error, plain.error_word
        if self.cause is None:
            self.cause = self._conclude()

    def _conclude(self):
        joined = "".join(self._content)
        if self.stopped_at is not None:
            self.text, self.finish_reason = joined, LOOP_STOP
            self.prompt_tokens = self.completion_tokens = None
            return None
        if self.finish_reason is None:
            return "stream_cut"
        if self.finish_reason in _GIVEN_UP:
            self.error_word = self.finish_reason
            return "body_error"
        if not self._content and not self.first_token and self.finish_reason not in ("stop", "length"):
            return "body_malformed"
        self.text = joined
        return None

    def _take(self, data, end):
        """Takes a chunk; gives the cause of failure or None."""
        try:
            value = parse_json(data)
        except Refusal:
            return "body_malformed"
        self.error = body_error(data)
        if self.error is not None:
            return "body_error"
        if type(value) is not dict:
            return "body_malformed"
        choices, model, usage = value.get("choices"), value.get("model"), value.get("usage")
        choices = [] if choices is None else choices
        if type(choices) is not list or (type(model) is not str and (choices or "model" in value)):
            return "body_malformed"
        if type(model) is str and model != self._model_name:
            return "model_differs"
        if echoes_otherwise(value, self._settings):
            return "settings_differ"
        if usage is not None:
            if type(usage) is not dict:
                return "body_malformed"
            counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
            if any(count is not None and COUNT(count) for count in counts):
                return "body_malformed"
            if counts != [None, None]:
                self.prompt_tokens, self.completion_tokens = counts
        if not choices:
            return None
        return "body_malformed" if len(choices) > 1 else self._take_choice(choices[0], end)

    def _take_choice(self, choice, end):
        if type(choice) is not dict or choice.get("index") not in (None, 0) or choice.get("index") is False:
            return "body_malformed"
        reason, earlier = choice.get("finish_reason"), self.finish_reason
        if nullable(text(0, 100))(reason) or reason == LOOP_STOP:
            return "body_malformed"
        parts = [choice.get("text"), None]
        if self._endpoint == "chat":
            delta = choice.get("delta")
            delta = {} if delta is None else delta
            if type(delta) is not dict:
                return "body_malformed"
            parts = [delta.get(name) for name in ("content", "reasoning_content", "reasoning")]
        if any(type(part) not in (str, type(None)) for part in parts):
            return "body_malformed"
        content = parts[0]
        reasoning = next((part for part in parts[1:] if part is not None), None)
        if earlier is not None and (content or reasoning or reason not in (None, earlier)):
            return "body_malformed"
        if content is not None:
            self._content.append(content)
        if content or reasoning:
            self.first_token = True
        if reason is not None:
            self.finish_reason = reason
        for watch, part in zip(self._watches, (content, reasoning)):
            if part:
                watch.feed(part)
        if self.finish_reason is None and any(watch.fired for watch in self._watches):
            self.stopped_at = end
        return None


def body_error(body):
    """(status, exception) of the error in a body, or None when there is none."""
    try:
        value = parse_json(body)
    except Refusal:
        return None
    error = value.get("error") if type(value) is dict else None
    if error is None:
        return None
    inner = error if type(error) is dict else {}
    statuses = [inner.get("code"), inner.get("status"), value.get("code"), value.get("status")]
    found = [status for status in map(_http_status, statuses) if status is not None]
    exception = first_units(inner["type"]) if type(inner.get("type")) is str else None
    return (found[0] if found else None, exception)


def _http_status(value):
    if type(value) is str and re.fullmatch("[1-5][0-9]{2}", value):
        return int(value)
    return value if type(value) is int and 100 <= value <= 599 else None


def first_units(value, count=200):
    """The first UTF-16 code units of a text; lone surrogates become U+FFFD."""
    return value.encode("utf-16-le", "surrogatepass")[: 2 * count].decode("utf-16-le", "replace")


def grade(grader, task, reference, candidate, candidate_digest):
    """Report and value of the graders `exact`, `integer` and `boxed`."""
    answer = candidate.decode("utf-8", "replace").strip(_TRIMMED)
    outcome, extracted = None, None
    if answer and grader["kind"] == "boxed":
        outcome, answer = last_boxed(answer)
    if outcome is None and not answer:
        outcome = "empty"
    if outcome is None:
        extracted, expected = answer, reference_text(reference)
        if grader.get("compare", grader["kind"]) == "integer":
            extracted, expected = _integer_form(answer), _integer_form(expected)
        if extracted is None:
            outcome = "not_an_integer"
        else:
            outcome = "correct" if extracted == expected else "wrong"
    value = 1 if outcome == "correct" else 0
    report = {
        "task": task,
        "candidate": candidate_digest,
        "tests": {"answer": "pass" if value else "fail"},
        "reward": value,
        "grader": grader,
        "extracted": None if extracted is None else first_units(extracted),
        "outcome": outcome,
    }
    return canonical_json(report), value


def last_boxed(answer):
    """Nothing and what stands in the last box, or why there is none."""
    opening = "\\boxed{"
    start = answer.rfind(opening)
    if start < 0:
        return "no_box", ""
    start += len(opening)
    depth, at = 1, start
    while at < len(answer):
        if answer[at] == "\\":
            at += 1
        elif answer[at] == "{":
            depth += 1
        elif answer[at] == "}":
            depth -= 1
            if depth == 0:
                return None, answer[start:at].strip(_TRIMMED)
        at += 1
    return "incomplete_box", ""


def _integer_form(answer):
    """The integer in a text without plus sign and leading zeros, or None."""
    if not _WHOLE_NUMBER.fullmatch(answer):
        return None
    digits = answer.lstrip("+-").lstrip("0") or "0"
    return "-" + digits if answer.startswith("-") and digits != "0" else digits


_TESTS = map_of(one_of("pass", "fail", "error", "skip", "timeout"))


def check_report(data, task, candidate_digest, reward, expected_tests):
    """Holds the bytes of a report by a grade command against the rules; gives its value or raises Refusal."""
    report = parse_json(data)
    if type(report) is not dict or report.get("task") != task or report.get("candidate") != candidate_digest:
        raise Refusal("it is not about this task and candidate")
    value = report.get("reward")
    if number(reward["min"], reward["max"])(value):
        raise Refusal("its reward is not in the range")
    tests = report.get("tests", {})
    if _TESTS(tests) or ("tests" not in report and expected_tests is not None):
        raise Refusal("its tests have not the form")
    if expected_tests is not None:
        if set(tests) != set(expected_tests):
            raise Refusal("its tests are not the expected ones")
        passed = sum(1 for result in tests.values() if result == "pass")
        if (passed == len(tests)) != (value == reward["max"]) or (passed == 0 and value != reward["min"]):
            raise Refusal("its reward does not follow from its tests")
    return value


# Trials of Harbor: what was kept of one is read again

_TRIAL_FILES = {
    "result": "result.json",
    "config": "config.json",
    "lock": "lock.json",
    "reward_json": "verifier/reward.json",
    "reward_text": "verifier/reward.txt",
}
_SEEN_FILE = by_member(
    "kind",
    {
        "file": members(
            {"kind": text(), "object": DIGEST, "size": COUNT, "modified_ms": integer(), "changed_ms": integer()}
        ),
        "absent": members({"kind": text()}),
        "refused": members({"kind": text(), "reason": text()}),
        "too_large": members({"kind": text(), "size": COUNT}),
    },
)
_SEEN_TRIAL = members(
    {
        "trial": text(),
        "exit": nullable(
            members(
                {
                    "exit_status": nullable(integer()),
                    "signal": nullable(text()),
                    "timed_out": boolean,
                    "spawn_error": nullable(text()),
                }
            )
        ),
        "files": members({name: _SEEN_FILE for name in (*_TRIAL_FILES, "candidate")}),
        "logs": map_of(COUNT),
    }
)
_DECODING_NAMES = (
    "temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "presence_penalty", "frequency_penalty",
    "repetition_penalty",
)  # fmt: skip
_LOCKED = (
    "agent", "environment", "verifier", "timeout_multiplier", "agent_timeout_multiplier",
    "verifier_timeout_multiplier", "agent_setup_timeout_multiplier", "environment_build_timeout_multiplier",
)  # fmt: skip
_NOT_OF_TRIALS = ("http_status", "embedded_status", "service_alive", "oom_kill")
_OF_THE_HOST = object()
_REWARD_NUMBER = re.compile("[+-]?(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INSTANT = re.compile(
    "([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\\.([0-9]{1,9}))?"
    "(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_CLOCK_TICK_MS = 10
_TRIAL_PHASES = ("environment_setup", "agent_setup", "agent_execution", "verifier")


def _is_in_order(result):
    """Whether the times that a result says of itself and its phases never go back."""
    said = [result.get("started_at")]
    for name in _TRIAL_PHASES:
        said += [_member(result.get(name), "started_at"), _member(result.get(name), "finished_at")]
    times = [time for time in map(instant_ms, [*said, result.get("finished_at")]) if time is not None]
    return times == sorted(times)


def fill_config(template, values):
    """A config with the placeholders of its strings filled in; what has no value stays as it is written."""
    if type(template) is dict:
        return {key: fill_config(item, values) for key, item in template.items()}
    if type(template) is list:
        return [fill_config(item, values) for item in template]
    if type(template) is not str:
        return template
    whole = re.fullmatch("{([a-z_]+)}", template)
    if whole:
        return values.get(whole[1], template)
    if any(values.get(name) is _OF_THE_HOST for name in re.findall("{([a-z_]+)}", template)):
        return _OF_THE_HOST

    def written(match):
        value = values.get(match[1], match[0])
        return value if type(value) is str else canonical_text(value)

    return re.sub("{([a-z_]+)}", written, template)


def _object_in(data):
    """The object in the bytes of a file, or None."""
    try:
        value = None if data is None else parse_json(data)
    except Refusal:
        return None
    return value if type(value) is dict else None


def _member(value, name):
    return value.get(name) if type(value) is dict else None


def _agrees(wanted, found, whole, absent=False):
    """Whether a value holds all that is wanted; unless whole, what is missing does not matter."""
    if wanted is _OF_THE_HOST:
        return True
    if absent:
        return not whole
    if type(wanted) is dict:
        return type(found) is dict and all(
            _agrees(item, found.get(key), whole, key not in found) for key, item in wanted.items()
        )
    if type(wanted) is list:
        same_length = type(found) is list and len(found) == len(wanted)
        return same_length and all(_agrees(item, other, whole) for item, other in zip(wanted, found))
    return type(found) not in (dict, list) and (type(wanted) is bool) == (type(found) is bool) and wanted == found


def instant_ms(value):
    """Milliseconds since 1970 of a time with its zone, or None."""
    match = _INSTANT.fullmatch(value) if type(value) is str else None
    try:
        at = match and datetime.datetime.strptime("%sT%s" % (match[1], match[2]), "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return None
    if not at or at.second > 59:
        return None
    since = at - datetime.datetime(1970, 1, 1)
    shift = 0 if match[4] is None else int(match[4] + "1") * (int(match[5]) * 60 + int(match[6]))
    return (since.days * 86400 + since.seconds - shift * 60) * 1000 + int(((match[3] or "") + "000")[:3])


class TrialReading:
    """What a trial came to: `made` is its candidate or None; then `value` and `report`, or `signals` of a failure."""

    def __init__(self, seen, files, expected):
        self._seen = seen
        self._files = files
        self._expected = expected
        self.made = self.report = self.value = self.signals = None
        self._read()

    def _fail(self, phase, cause, exception=None, stage=None):
        ended = self._seen["exit"] or {"exit_status": None, "signal": None}
        stage = stage or ("generate" if self._expected["graded"] is None else "grade")
        self.signals = (stage, phase, cause, ended["exit_status"], ended["signal"], exception)

    def _read(self):
        result = _object_in(self._files.get("result"))
        if result is None or type(result.get("finished_at")) is not str:
            self._fail(*(self._broken_off() or ("collect", "trial_unreadable")))
            return
        if self._seen["trial"] != self._expected["trial"] or not self._is_ours(result):
            self._fail("collect", "trial_mismatch")
            return
        raised = _member(result, "exception_info")
        exception = None
        if raised is not None:
            name = _member(raised, "exception_type")
            exception = first_units(name) if type(name) is str else "unnamed"
        begun = [
            name
            for name in _TRIAL_PHASES
            if type(_member(result.get(name), "started_at")) is str
        ]
        if "verifier" not in begun:
            phase = begun[-1] if begun else "environment_setup"
            self._fail(phase, "trial_unreadable" if exception is None else "trial_exception", exception)
            return
        patch = self._seen["files"]["candidate"]
        if patch["kind"] == "file":
            candidate = patch["object"]
        elif patch["kind"] == "absent" and self._expected["when_absent"] == "empty":
            candidate = digest_of(b"")
        else:
            self._fail("collect", "body_too_large" if patch["kind"] == "too_large" else "candidate_missing")
            return
        self.made = candidate
        self._grade(result, candidate, exception)

    def _broken_off(self):
        ended = self._seen["exit"]
        if ended is None:
            return None
        if ended["spawn_error"] is not None:
            return "spawn", "spawn_failed"
        if ended["timed_out"]:
            return "running", "time_limit"
        if ended["signal"] is not None:
            return "running", "killed_by_signal"
        return None if ended["exit_status"] == 0 else ("running", "exit_status")

    def _is_ours(self, result):
        """Whether the papers of the trial are those of the plan."""
        asked, name = self._expected["config"], self._expected["trial"]
        config, lock = _object_in(self._files.get("config")), _object_in(self._files.get("lock"))
        if config is None or lock is None or result.get("trial_name") != name or config.get("trial_name") != name:
            return False
        whole = result.get("config")
        if any(_member(paper, "source_trial") is not None for paper in (whole, config, lock)):
            return False
        if type(whole) is not dict or not _agrees({**asked, "trial_name": name}, whole, True):
            return False
        if not _agrees(asked, config, False) or ("agent" in asked and type(lock.get("agent")) is not dict):
            return False
        if not _agrees({key: asked[key] for key in _LOCKED if key in asked}, lock, False):
            return False
        digest, agent, info = _member(lock.get("task"), "digest"), _member(asked.get("agent"), "name"), result.get("agent_info")
        if type(digest) is not str or digest != self._expected["digest"]:
            return False
        return type(agent) is not str or type(info) is not dict or info.get("name") == agent

    def _grade(self, result, candidate, exception):
        graded = self._expected["graded"]
        if graded is not None and candidate != graded:
            self._fail("collect", "trial_mismatch", stage="grade")
            return
        seen = {name: self._seen["files"][name] for name in ("reward_json", "reward_text")}
        refused = any(file["kind"] in ("refused", "too_large") for file in seen.values())
        if result.get("step_results") not in (None, []):
            self._fail("verifier", "report_invalid", exception, stage="grade")
            return
        if refused:
            self._fail("verifier", "report_invalid", stage="grade")
            return
        rewards = _member(result.get("verifier_result"), "rewards")
        if rewards is None:
            cause = "report_missing" if exception is None else "trial_exception"
            self._fail("verifier", cause, exception, stage="grade")
            return
        began = instant_ms(_member(result.get("verifier"), "started_at"))
        value = self._reward(rewards, began, seen) if _is_in_order(result) else None
        if value is None:
            self._fail("verifier", "report_invalid", exception, stage="grade")
            return
        files = {name: self._seen["files"][name].get("object") for name in _TRIAL_FILES}
        self.value = value
        self.report = canonical_json(
            {
                "task": self._expected["task"],
                "candidate": candidate,
                "tests": {},
                "reward": value,
                "grader": {"kind": "reward", "key": self._expected["grader"]["key"]},
                "trial": self._expected["trial"],
                "exception": exception,
                **files,
            }
        )

    def _reward(self, rewards, began, seen):
        """The reward when everything agrees in it, else None."""
        key, limits = self._expected["grader"]["key"], self._expected["grader"]["reward"]
        value = _member(rewards, key)
        if number(limits["min"], limits["max"])(value) or began is None:
            return None
        telling = [
            name for name, file in seen.items() if file["kind"] == "file" and (name == "reward_json" or key == "reward")
        ]
        for name in telling:
            if min(seen[name]["modified_ms"], seen[name]["changed_ms"]) < began - _CLOCK_TICK_MS:
                return None
            data = self._files[name]
            if name == "reward_json":
                written = _member(_object_in(data), key)
                if type(written) is bool:
                    written = int(written)
                elif type(written) is str:
                    written = float(written) if _REWARD_NUMBER.fullmatch(written) else None
            else:
                words = data.decode("latin-1").strip("\t\n\v\f\r ")
                written = float(words) if _REWARD_NUMBER.fullmatch(words) else None
            if type(written) not in (int, float) or written != value:
                return None
        return value + 0 if telling else None


_FROM_BODY = ("body_not_json", "body_error", "body_no_choice", "body_malformed", "stream_cut", "model_differs", "settings_differ")


_CUT = members({"kept": COUNT, "seen": COUNT})
_WORD = by_member(
    "found",
    {
        "absent": members({"found": one_of("absent")}),
        "refused": members({"found": one_of("refused"), "reason": text(1)}),
        "too_large": members({"found": one_of("too_large"), "size": COUNT}),
    },
)
_CAPTURE = members(
    {},
    {
        "streams": members({}, {"stdout": _CUT, "stderr": _CUT}),
        "artifacts": map_of(_WORD),
        "stop": members(
            {
                "exit_status": nullable(integer()),
                "signal": nullable(text()),
                "timed_out": boolean,
                "text": nullable(text()),
            }
        ),
    },
)


def read_capture(data):
    """The value of a capture, which is canonical JSON of its form and holds something."""
    try:
        capture = parse_canonical(data)
    except Refusal as refusal:
        raise Violation("CAPTURE_DIFFERS", "what is said of cut output: %s" % refusal) from None
    problem = _CAPTURE(capture)
    require(problem is None, "what is said of cut output%s" % problem, "CAPTURE_DIFFERS")
    require(capture and all(capture.values()), "what is said of cut output is nothing", "CAPTURE_DIFFERS")
    return capture


class Evidence:
    """Holds what attempts leave behind against the plan."""

    def __init__(self, plan, pack, outcome, manifest_digest):
        self._manifest_digest = manifest_digest
        self._plan = plan
        self._pack = pack
        self._outcome = outcome
        self._runner = plan.protocol["runner"]
        self._streams = self._runner.get("stream", False)
        self._stops = True
        self._templates = {
            name: [(role, parse_template(condition["prompt"][role])) for role in ("system", "user") if role in condition["prompt"]]
            for name, condition in plan.protocol["conditions"].items()
        }

    def _bytes(self, digest, what):
        """Bytes of an object; None, and noted, when they cannot be looked at."""
        data = self._pack.read(digest)
        if data is None and self._pack.number(digest) is not None:
            self._outcome.skip("%s that is redacted" % what)
        return data

    def _fields(self, key):
        fields = self._plan.fields(key)
        if fields is None:
            self._outcome.skip("what rests on the fields of a task in a redacted file")
        return fields

    # requests

    def check_request(self, entry, slot):
        """The request of an attempt."""
        require(
            (entry["request"] is None) == (entry["kind"] == "regrade"),
            "a request stands exactly where something is generated",
            "REQUEST_DIFFERS",
        )
        if entry["request"] is None:
            return
        data, fields = self._bytes(entry["request"], "a request"), self._fields(entry["key"])
        if data is None or fields is None:
            return
        if self._runner["adapter"] == "openai":
            expected = self._openai_request(entry, fields)
        elif self._runner["adapter"] == "harbor":
            expected = self._trial_request(entry, slot, fields, data)
        else:
            expected = self._command_request(entry, slot, fields, data)
        try:
            same = digest_of(canonical_json(expected)) == entry["request"]
        except Refusal:
            same = False
        require(same, "the request is not the one that the plan gives", "REQUEST_DIFFERS")

    def _prompt(self, arm, fields):
        name = self._plan.protocol["arms"][arm]["condition"]
        return {role: fill_template(parts, fields) for role, parts in self._templates[name]}

    def _openai_request(self, entry, fields):
        key, condition = entry["key"], self._plan.condition(entry["key"]["arm"])
        prompt = self._prompt(key["arm"], fields)
        request = {
            **condition["decoding"],
            "model": self._plan.model_name(key),
            "seed": entry["sampling_seed"],
            "n": 1,
            "stream": self._streams,
        }
        if self._streams:
            request["stream_options"] = {"include_usage": True}
        if "reasoning" in condition:
            request["chat_template_kwargs"] = {"enable_thinking": condition["reasoning"] == "on"}
        if self._runner["endpoint"] == "chat":
            request["messages"] = [{"role": role, "content": content} for role, content in prompt.items()]
        else:
            request["prompt"] = prompt.get("system", "") + prompt["user"]
        return request

    def _host_paths(self, data):
        """Where weights and tokenizer lay, as a request says: no part of the plan."""
        try:
            told = parse_json(data)
        except Refusal as refusal:
            raise Violation("REQUEST_DIFFERS", "the request: %s" % refusal) from None
        model = told.get("model") if type(told) is dict else None
        return {
            name: model[name] if type(model) is dict and type(model.get(name)) is str else None
            for name in ("weights", "tokenizer")
        }

    def _trial_expected(self, key, fields, attempt, seed, graded=None):
        """What a trial of an attempt must be; graded is the candidate of a regrade."""
        condition = self._plan.condition(key["arm"])
        values = {name: condition["decoding"][name] for name in _DECODING_NAMES if name in condition["decoding"]}
        values.update(self._prompt(key["arm"], fields))
        values.update({"model": self._plan.model_name(key), "sampling_seed": seed, "task_id": key["task"]})
        if "reasoning" in condition:
            values["reasoning"] = condition["reasoning"]
        part = self._runner["trial"]
        if graded is not None:
            values["candidate"] = _OF_THE_HOST
            part = self._runner.get("regrade", {"config": {}})
        return {
            "trial": "bb-%s-%s" % (self._manifest_digest[7:19], attempt),
            "task": key["task"],
            "digest": fields[self._runner["tasks"]["digest"]],
            "config": fill_config(part["config"], values),
            "grader": condition["grader"],
            "when_absent": self._runner["candidate"]["when_absent"],
            "graded": graded,
        }

    def _trial_request(self, entry, slot, fields, data):
        key = entry["key"]
        expected = self._trial_expected(key, fields, entry["attempt"], entry["sampling_seed"])
        return {
            "boundbook": 1,
            "stage": "trial",
            "attempt": entry["attempt"],
            "slot": {"id": slot, "tuple": slot_tuple(key)},
            "model": {"name": self._plan.model_name(key), **self._host_paths(data)},
            "task": {"id": key["task"], "fields": fields, "digest": expected["digest"]},
            "trial": expected["trial"],
            "config": expected["config"],
            "sampling_seed": entry["sampling_seed"],
        }

    def _command_request(self, entry, slot, fields, data):
        key, condition = entry["key"], self._plan.condition(entry["key"]["arm"])
        prompt = self._prompt(key["arm"], fields)
        paths = self._host_paths(data)
        return {
            "boundbook": 1,
            "stage": "generate",
            "attempt": entry["attempt"],
            "slot": {"id": slot, "tuple": slot_tuple(key)},
            "model": {"name": self._plan.model_name(key), **paths},
            "task": {"id": key["task"], "fields": fields},
            "prompt": {"system": prompt.get("system"), "user": prompt["user"]},
            "decoding": condition["decoding"],
            "reasoning": condition.get("reasoning"),
            "execution": condition.get("execution", {}),
            "sampling_seed": entry["sampling_seed"],
        }

    # rechecks

    def check_recheck_start(self, entry, key):
        """The request is that of the slot."""
        start = {"key": key, "kind": "first", "sampling_seed": self._plan.sampling_seed(key), "request": entry["request"]}
        self.check_request(start, entry["slot"])

    def check_recheck(self, entry, key):
        """What was kept is read and graded as an attempt's is, without the stop rule."""
        result, self._stops = entry["result"], False
        try:
            if result["kind"] == "failure":
                self.check_stage({**entry, "stage": "generate"}, key, None, False)
                return
            made = {"kind": "candidate", "candidate": result["candidate"]}
            self.check_stage({**entry, "stage": "generate", "result": made}, key, None, False)
        finally:
            self._stops = True
        self._check_report(result, key)

    # stages

    def check_stage(self, entry, key, candidate, again, taken_over=None):
        """What a stage left behind; candidate is the digest of what was graded, again whether by a regrade, taken_over
        the session that went on with it."""
        result = entry["result"]
        if not (self._runner["adapter"] == "openai" and entry["stage"] == "generate"):
            self._check_first_token(entry, None)
            if result["kind"] == "failure":
                require("first_token" not in result["signals"], "nothing is streamed here", "FAILURE_DIFFERS")
        if self._runner["adapter"] == "command":
            artifacts = self._runner.get("artifacts", []) if entry["stage"] == "generate" else []
            self._check_capture(entry["objects"], self._runner[entry["stage"]], artifacts)
        if "unfinished_candidate" in entry["objects"]:
            self._check_unfinished(entry)
        if self._runner["adapter"] == "harbor":
            self._check_said(entry, key)
            self._check_trial(entry, key, candidate, again, taken_over)
            return
        if result["kind"] == "candidate":
            self._check_candidate(entry, key)
            return
        self._check_said(entry, key)
        if result["kind"] == "report":
            self._check_report(result, key)
        elif entry["stage"] == "generate":
            if self._runner["adapter"] == "openai":
                self._check_failed_answer(entry, key)
        else:
            self._check_failed_grading(entry, key, candidate)

    def _check_unfinished(self, entry):
        """What lay in the place of a candidate is graded, unless the rules call what cut its command infrastructure."""
        result = entry["result"]
        failed = self._runner["adapter"] == "command" and entry["stage"] == "generate" and result["kind"] == "failure"
        try:
            lawful = failed and result["signals"]["phase"] == "running"
            rules = Rules(self._plan.protocol["attempts"]["rules"])
            lawful = lawful and rules.attribute(result["signals"])[0] == "infrastructure"
        except Unsupported:
            self._outcome.skip("an unfinished candidate that rests on a pattern beyond the common part")
            return
        require(lawful, "a candidate that should have been graded was left out", "FAILURE_DIFFERS")

    def _grader(self, key):
        return self._plan.condition(key["arm"])["grader"]

    def _check_said(self, entry, key):
        """Usage and finish reason of everything but an answered request."""
        by_command = self._runner["adapter"] in ("command", "harbor")
        free = by_command and (entry["stage"] == "generate" or self._grader(key)["kind"] in ("report", "reward"))
        require(
            entry["usage"] is None and (free or entry["finish_reason"] is None),
            "nothing is there that could say usage or finish reason",
            "ANSWER_DIFFERS",
        )

    def _check_first_token(self, entry, came):
        measured = entry.get("first_token_seconds")
        require(
            (came is True) == (measured is not None) and (measured or 0) <= entry["seconds"],
            "when the first token came is not what the kept stream lets one expect",
            "ANSWER_DIFFERS",
        )

    def _answer(self, body, key):
        name, endpoint = self._plan.model_name(key), self._runner["endpoint"]
        if not self._streams:
            return Answer(body, endpoint, name)
        condition = self._plan.condition(key["arm"])
        settings = settings_of(condition["decoding"], self._plan.sampling_seed(key))
        stop = condition.get("loop_stop") if self._stops else None
        return StreamedAnswer(body, endpoint, name, stop, settings)

    def _check_capture(self, objects, step, artifacts):
        """What a command's stage says of its own evidence."""
        declared = {one["name"]: one["max_bytes"] for one in artifacts}
        capture = {}
        if "capture" in objects:
            data = self._bytes(objects["capture"], "what is said of cut output")
            capture = None if data is None else read_capture(data)
        words = (capture or {}).get("artifacts", {})
        kept = {name[len("artifact/") :]: digest for name, digest in objects.items() if name.startswith("artifact/")}
        differs = "CAPTURE_DIFFERS"
        require(set(words) | set(kept) <= set(declared), "an artifact that is not declared here", differs)
        for name, most in declared.items():
            if name in kept or capture is not None:
                require((name in kept) != (name in words), "an artifact is kept and not kept, or neither", differs)
            size = self._pack.length(kept[name]) if name in kept else None
            require(size is None or size <= most, "an artifact is larger than it may be", differs)
            word = words.get(name, {"found": "absent"})
            require(word["found"] != "too_large" or word["size"] > most, "an artifact was not too large", differs)
        if capture is None:
            return
        most = min(step["output_bytes"], MAX_OBJECT_SIZE)
        for name, cut in capture.get("streams", {}).items():
            size = self._pack.length(objects[name]) if name in objects else 0
            fits = cut["kept"] == most < cut["seen"] and size in (None, most)
            require(fits, "%s was not cut as it says" % name, differs)
        if "stop" in capture:
            stop = capture["stop"]
            failed = "stop" in step and not (stop["exit_status"] == 0 and not stop["timed_out"])
            require(failed, "a stop command that is not declared, or did not fail", differs)

    def _check_candidate(self, entry, key):
        if self._runner["adapter"] == "command":
            self._check_said(entry, key)
            return
        digest = entry["objects"].get("response")
        require(digest is not None, "the answer was not kept", "OBJECT_MISSING")
        body = self._bytes(digest, "an answer")
        if body is None:
            return
        answer = self._answer(body, key)
        self._check_first_token(entry, answer.first_token)
        require(
            answer.stopped_at in (None, len(body)), "the stream goes on after the stop rule fired", "CANDIDATE_DIFFERS"
        )
        require(answer.cause is None, "the kept answer is no answer: %s" % answer.cause, "CANDIDATE_DIFFERS")
        same = digest_of(to_utf8(answer.text)) == entry["result"]["candidate"]
        require(same, "the candidate is not the text of the answer", "CANDIDATE_DIFFERS")
        counts = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens}
        usage = None if set(counts.values()) == {None} else counts
        reason = None if answer.finish_reason is None else first_units(answer.finish_reason)
        require(
            entry["usage"] == usage and entry["finish_reason"] == reason,
            "usage or finish reason is not that of the answer",
            "ANSWER_DIFFERS",
        )

    def _check_trial(self, entry, key, candidate, again, taken_over):
        """Reads a trial again from what was kept of it."""
        result = entry["result"]
        code = {"candidate": "CANDIDATE_DIFFERS", "report": "REPORT_DIFFERS", "failure": "FAILURE_DIFFERS"}[result["kind"]]
        fields = self._fields(key)
        kept = None if fields is None else self._kept_trial(entry, code)
        if kept is None:
            return
        seed = self._plan.sampling_seed(key)
        expected = self._trial_expected(key, fields, entry["attempt"], seed, candidate if again else None)
        if again and taken_over is not None:
            expected["trial"] += "-" + taken_over[:8]
        reading = TrialReading(*kept, expected)
        signals = reading.signals
        if entry["stage"] == "grade" and not again and reading.made != candidate:
            signals = ("grade", "between", "process_gone", None, None, None)
            require(result["kind"] == "failure", "the trial did not make this candidate", code)
        if result["kind"] == "candidate":
            require(reading.made == result["candidate"], "the trial gives another candidate", code)
            return
        if result["kind"] == "failure":
            told = tuple(result["signals"][name] for name in ("stage", "phase", "cause", "exit_status", "signal", "exception"))
            made = entry["stage"] == "generate" and reading.made is not None
            silent = all(result["signals"].get(name) is None for name in _NOT_OF_TRIALS)
            require(signals == told and silent and not made, "the trial shows another end", code)
            return
        require(reading.report is not None, "the trial gives no valid report", code)
        require(digest_of(reading.report) == result["report"], "the trial gives another report", code)
        require(reading.value == result["value"], "the trial gives another value", "VALUE_DIFFERS")

    def _kept_trial(self, entry, code):
        """(what was seen, bytes of the files), or None when some are redacted."""
        objects = entry["objects"]
        require("trial" in objects, "nothing was kept of the trial", code)
        data = self._bytes(objects["trial"], "what was seen of a trial")
        if data is None:
            return None
        seen = _object_in(data)
        require(_SEEN_TRIAL(seen) is None, "what was seen of the trial has not its form", code)
        files = {}
        for name in _TRIAL_FILES:
            due = seen["files"][name].get("object")
            require(objects.get(name) == due, "the object %s is not the file that was seen" % name, code)
            if due is not None:
                files[name] = self._bytes(due, "a file of a trial")
                if files[name] is None:
                    return None
        return seen, files

    def _check_report(self, result, key):
        grader = self._grader(key)
        if grader["kind"] == "report":
            self._check_foreign_report(result, key, grader)
            return
        candidate, fields = self._bytes(result["candidate"], "a candidate"), self._fields(key)
        if candidate is None or fields is None:
            self._judge_report(result, key, {"min": 0, "max": 1}, ["answer"])
            return
        report, value = grade(grader, key["task"], fields[grader["answer"]], candidate, result["candidate"])
        require(digest_of(report) == result["report"], "grading the candidate gives another report", "REPORT_DIFFERS")
        require(value == result["value"], "grading the candidate gives another value", "VALUE_DIFFERS")

    def check_regrade(self, grader, is_cut, entry, key):
        """Grades a candidate with a corrected grader (docs/formats/evidence.md)."""
        candidate, fields = self._bytes(entry["candidate"], "a candidate"), self._fields(key)
        if candidate is None or fields is None:
            return
        usable = reference_text(fields.get(grader["answer"]))
        comparison = grader.get("compare", grader["kind"])
        usable = usable and (comparison == "exact" or _WHOLE_NUMBER.fullmatch(usable))
        require(usable, "the reference is none of this grader", "REGRADING_DIFFERS")
        report, value = grade(grader, key["task"], fields[grader["answer"]], candidate, entry["candidate"])
        result = {"kind": "graded", "value": value, "report": digest_of(report)}
        is_whole = grader["kind"] == "boxed" and parse_json(report)["extracted"] is not None
        if is_cut and not is_whole:
            result = {"kind": "truncated"}
        require(_is_same(result, entry["result"]), "grading the candidate again gives another result", "REGRADING_DIFFERS")

    def check_command_regrade(self, grader, entry, key):
        """Holds what a corrected grade command left against the rules for reports; it is not run again."""
        differs, result, objects = "REGRADING_DIFFERS", entry["result"], entry["stage"]["objects"]
        self._check_capture(objects, grader["grade"], [])
        self._bytes(entry["candidate"], "a candidate")
        failed = result["kind"] == "failed"
        require(not failed or result["signals"]["stage"] == "grade", "it failed in another stage", differs)
        rejected = objects.get("rejected_report")
        require(failed or rejected is None, "a valid report is not rejected", differs)
        digest = rejected if failed else result["report"]
        data = None if digest is None else self._bytes(digest, "a report")
        known, tests = self._expected_tests(key, grader)
        if data is None or (failed and not known):
            return
        if "report_schema" in grader:
            self._outcome.skip("the JSON Schema of a report")
        try:
            value = check_report(data, key["task"], entry["candidate"], grader["reward"], tests if known else None)
        except Refusal as refusal:
            require(failed, "the report is not valid: %s" % refusal, differs)
            return
        require(not failed or "report_schema" in grader, "the rejected report is valid", differs)
        require(failed or value == result["value"], "the report gives another value", differs)

    def _expected_tests(self, key, grader):
        """(known, list or None): the tests that a report has to cover."""
        if "expected_tests" not in grader:
            return True, None
        fields = self._fields(key)
        return fields is not None, fields and fields[grader["expected_tests"]]

    def _check_foreign_report(self, result, key, grader):
        if "report_schema" in grader:
            self._outcome.skip("the JSON Schema of a report")
        _, tests = self._expected_tests(key, grader)
        self._judge_report(result, key, grader["reward"], tests)

    def _judge_report(self, result, key, reward, tests):
        data = self._bytes(result["report"], "a report")
        if data is None:
            return
        try:
            value = check_report(data, key["task"], result["candidate"], reward, tests)
        except Refusal as refusal:
            raise Violation("REPORT_DIFFERS", "the report is not valid: %s" % refusal) from None
        require(value == result["value"], "the value is not the reward of the report", "VALUE_DIFFERS")

    def _check_failed_grading(self, entry, key, candidate):
        grader, digest = self._grader(key), entry["objects"].get("rejected_report")
        require(grader["kind"] == "report", "grading of this kind cannot fail", "FAILURE_DIFFERS")
        if digest is None:
            return
        data = self._bytes(digest, "a rejected report")
        known, tests = self._expected_tests(key, grader)
        if data is None or not known:
            return
        try:
            check_report(data, key["task"], candidate, grader["reward"], tests)
        except Refusal:
            return
        if "report_schema" in grader:
            self._outcome.skip("whether a rejected report breaks its JSON Schema")
            return
        raise Violation("FAILURE_DIFFERS", "the rejected report is valid")

    def _check_failed_answer(self, entry, key):
        signals, digest = entry["result"]["signals"], entry["objects"].get("response")
        body = b"" if digest is None else self._bytes(digest, "an answer")
        if body is None:
            return
        cause, shown = signals["cause"], (signals["http_status"], signals["embedded_status"], signals["exception"])
        status, exception = body_error(body) or (None, None)
        answer, came = None, False if self._streams else None
        if shown[0] in (None, 200) and (self._streams or cause in _FROM_BODY):
            answer = self._answer(body, key)
            came = answer.first_token
        if self._streams:
            hidden = answer is not None and (answer.cause is None or answer.stopped_at is not None)
            require(not hidden, "the kept stream is a complete answer", "FAILURE_DIFFERS")
        require(signals.get("first_token") is came, "whether a token came is another thing", "FAILURE_DIFFERS")
        self._check_first_token(entry, came)
        if cause in _FROM_BODY:
            require(answer is not None, "the status is that of a failure", "FAILURE_DIFFERS")
            status, exception = answer.error or (None, None)
            require(answer.cause == cause, "reading the answer gives %s" % answer.cause, "FAILURE_DIFFERS")
            expected = (200, status, exception)
            if cause != "body_error" or answer.error_word is not None:
                expected = (200, None, answer.error_word)
        elif cause == "http_status":
            require(shown[0] not in (None, 200), "the status is no failure", "FAILURE_DIFFERS")
            expected = (shown[0], None, exception)
        elif cause == "queue_limit":
            require(shown[0] in (429, 503), "the status does not ask to wait", "FAILURE_DIFFERS")
            expected = (shown[0], None, exception)
        else:
            expected = (shown[0], None, None)
        require(shown == expected, "the signals are not those of the kept answer", "FAILURE_DIFFERS")


# ---------------------------------------------------------------------------------------------------------------
# Services: what they say of themselves, and the canary (docs/formats/services.md)
# ---------------------------------------------------------------------------------------------------------------

MAX_CHANGES = 50
_VOLATILE = frozenset(
    """created permission modified_at timestamp uptime uptime_s uptime_seconds internal_states last_gen_throughput
    is_processing is_sleeping id_task id_slot next_token n_decoded n_past slots slots_idle slots_processing""".split()
)
_VOLATILE_PLACES = ("/~1props/default_generation_settings/id", "/~1props/default_generation_settings/prompt")
_OF_A_START = frozenset("port nccl_port dist_init_addr pid random_seed root model_path tokenizer_path".split())
_NOTHING = object()


def _pointer_part(name):
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _read_object(data):
    """The members of an object that has a canonical form; none for anything else."""
    try:
        value = parse_json(data)
        canonical_json(value)
    except Refusal:
        return {}
    return value if type(value) is dict else {}


def description_changes(before, after, at):
    """Where two descriptions of a service differ: (pointers, number)."""
    found = []

    def compare(left, right, pointer):
        if type(left) is dict and type(right) is dict:
            for name in _in_utf16_order(set(left) | set(right)):
                place = pointer + _pointer_part(name)
                volatile = name in _VOLATILE or place in _VOLATILE_PLACES
                if not volatile and not (at == "start" and name in _OF_A_START):
                    compare(left.get(name, _NOTHING), right.get(name, _NOTHING), place)
        elif type(left) is list and type(right) is list and len(left) == len(right):
            for position, item in enumerate(left):
                compare(item, right[position], "%s/%d" % (pointer, position))
        elif left is _NOTHING or right is _NOTHING or canonical_json(left) != canonical_json(right):
            found.append(first_units(pointer, 150))

    left, right = _read_object(before), _read_object(after)
    for path in _in_utf16_order(set(left) & set(right)):
        compare(left[path], right[path], _pointer_part(path))
    return found[:MAX_CHANGES], len(found)


def canary_requests(runner, model_name):
    canary = runner["service"]["canary"]
    for prompt in canary["prompts"]:
        request = {
            "model": model_name,
            "temperature": 0,
            "top_p": 1,
            "top_k": -1,
            "min_p": 0,
            "max_tokens": canary["max_tokens"],
            "seed": 0,
            "n": 1,
            "stream": False,
            "return_token_ids": True,
        }
        if runner["endpoint"] == "completions":
            yield {**request, "prompt": prompt, "logprobs": canary["logprobs"]}
        else:
            messages = [{"role": "user", "content": prompt}]
            yield {**request, "messages": messages, "logprobs": True, "top_logprobs": canary["logprobs"]}


def _is_list_of(value, check):
    return type(value) is list and all(check(item) is None for item in value)


_BYTE_LIST = integer(0, 255)
_MAYBE_NUMBER = nullable(number())


def read_canary(body, model_name):
    """What an answer to a canary prompt holds; None when it is no such answer."""
    value = _read_object(body)
    choices = value.get("choices")
    if value.get("error") is not None or value.get("model") != model_name:
        return None
    if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict:
        return None
    choice = choices[0]
    said = _canary_tokens(choice.get("logprobs"))
    if said is None:
        return None
    if _is_list_of(choice.get("token_ids"), COUNT):
        said = {**said, "form": "ids", "tokens": choice["token_ids"]}
    prompts = [ids for ids in (choice.get("prompt_token_ids"), value.get("prompt_token_ids")) if _is_list_of(ids, COUNT)]
    return {**said, "prompt_ids": prompts[0] if prompts else None}


def _canary_tokens(given):
    if type(given) is not dict:
        return None
    content = given.get("content")
    if type(content) is not list:
        tokens, logprobs = given.get("tokens"), given.get("token_logprobs")
        if not _is_list_of(tokens, text()) or not _is_list_of(logprobs, _MAYBE_NUMBER) or len(tokens) != len(logprobs):
            return None
        return {"form": "text", "tokens": tokens, "logprobs": logprobs}
    if any(type(item) is not dict for item in content):
        return None
    texts, logprobs, ids, parts = ([item.get(name) for item in content] for name in ("token", "logprob", "id", "bytes"))
    if not _is_list_of(texts, text()) or not _is_list_of(logprobs, _MAYBE_NUMBER):
        return None
    if _is_list_of(ids, COUNT):
        return {"form": "ids", "tokens": ids, "logprobs": logprobs}
    if all(_is_list_of(part, _BYTE_LIST) for part in parts):
        return {"form": "bytes", "tokens": [bytes(part).hex() for part in parts], "logprobs": logprobs}
    return {"form": "text", "tokens": texts, "logprobs": logprobs}


def compare_canaries(before, after, tolerance):
    """(verdict, largest difference of a log-probability)."""
    largest, same = None, len(before) == len(after)
    for left, right in zip(before, after):
        for name in ("form", "tokens", "prompt_ids"):
            same = same and canonical_json(left[name]) == canonical_json(right[name])
        same = same and len(left["logprobs"]) == len(right["logprobs"])
        for one, other in zip(left["logprobs"], right["logprobs"]):
            if one is None or other is None:
                same = same and one is other
            else:
                largest = max(largest or 0, abs(float(one) - float(other)))
    return ("same" if same and (largest or 0) <= tolerance else "differs"), largest


def canary_readings(data, model_name):
    """The readings in the object of a canary; None when something in it is no answer."""
    answers = _read_object(data).get("answers")
    if not _is_list_of(answers, lambda item: None if type(item) is dict else ": not an object"):
        return None
    bodies = [answer.get("body") for answer in answers]
    if any(type(body) is not str for body in bodies):
        return None
    readings = [read_canary(body.encode("utf-8"), model_name) for body in bodies]
    return None if None in readings else readings


class Services:
    """What a ledger's services say and do: what is held against what, and what its report has to say of it."""

    def __init__(self, protocol, pack, outcome):
        self._protocol = protocol
        self._runner = protocol["runner"]
        self._service = self._runner.get("service", {})
        self._pack = pack
        self._outcome = outcome
        self._objects = {}
        self._first = {}
        self._reference = {}
        self._pace = {}
        self._checks = {}
        self._suspects = {}
        self._told = set()
        self.changes = []
        self.doubts = []
        self.swaps = []

    def up(self, entry):
        """A service that is up, by either kind of entry."""
        self._checks[entry["model"]] = (entry["seq"], 0)
        external = self._service.get("external")
        if self._runner["adapter"] == "openai":
            require((external is not None) == (entry["type"] == "service.attached"), "not the kind of service of the plan")
        if external is not None:
            origin = external["origin"]
            due = origin if type(origin) is str else origin.get(entry["model"])
            require(entry["origin"] == due, "the service is at another address than the plan names")
        if entry["effective"] is not None:
            self._objects[entry["seq"]] = entry["effective"]
            self._first.setdefault(entry["model"], entry["seq"])

    def described(self, entry, service):
        require(service["effective"] is not None, "the service never said anything of itself")
        own, at, changed = service["seq"], entry["at"], entry["changed"]
        due = own if at == "end" else self._first[entry["model"]]
        require(at == "end" or due != own, "it is the first of its model")
        require(entry["compared_with"] == due, "it is held against another entry")
        require(at == "end" or entry["effective"] == service["effective"], "it is not what the service said at its start")
        full = len(changed) == entry["total"] or len(changed) == MAX_CHANGES < entry["total"]
        require(full, "not as many differences as it counts")
        if entry["total"]:
            self.changes.append((entry["model"], entry["seq"], changed[:3]))
        if at == "end" and any(pointer.startswith("/~1v1~1models") for pointer in changed):
            self._suspects[entry["session"]] = (entry["model"], True)
        before, after = self._bytes(self._objects[due]), self._bytes(entry["effective"])
        if before is not None and after is not None:
            found = description_changes(before, after, at)
            require(found == (changed, entry["total"]), "the descriptions differ elsewhere", "DESCRIPTION_DIFFERS")

    def canary(self, entry, service):
        model, seq, at, verdict = entry["model"], entry["seq"], entry["at"], entry["verdict"]
        require("canary" in self._service, "the plan declares no canary")
        require(at not in service["canaries"], "the canary was recorded before")
        reference = self._reference.get(model)
        require(entry["compared_with"] == reference, "it is held against another entry")
        require((verdict == "reference") == (reference is None), "the first canary of a model is the reference")
        require(at == "start" or "start" in service["canaries"], "there was none at its start")
        service["canaries"][at] = verdict
        self._objects[seq] = entry["answers"]
        self._reference.setdefault(model, seq)
        if verdict == "differs":
            since, attempts = self._pace.get(model, (seq, 0))
            self.doubts.append((model, seq, since, attempts))
            self._told.add(entry["session"])
        else:
            self._pace[model] = (seq, 0)
            if at == "start":
                self._checks[model] = (seq, 0)
        self._compare(entry, reference)

    def _compare(self, entry, reference):
        model, data = entry["model"], self._bytes(entry["answers"])
        if data is None:
            return
        readings, requests = canary_readings(data, model), list(canary_requests(self._runner, model))
        sound = readings is not None and len(readings) == len(requests)
        if sound:
            answers = _read_object(data)["answers"]
            parts = zip(requests, answers, readings)
            due = [{"request": request, "body": answer["body"], **reading} for request, answer, reading in parts]
            sound = canonical_json({"answers": due}) == data
        require(sound, "the kept answers are not what is said of them", "CANARY_DIFFERS")
        before = None if reference is None else self._bytes(self._objects[reference])
        before = None if before is None else canary_readings(before, model)
        if before is None:
            return
        tolerance = self._service["canary"]["logprob_tolerance"]
        found = compare_canaries(before, readings, tolerance)
        same = found == (entry["verdict"], entry["largest_logprob_difference"])
        require(same, "the answers say %s" % found[0], "CANARY_DIFFERS")

    def started(self, entry, services):
        """An attempt of a slot of the plan is started."""
        if entry["kind"] == "regrade":
            return
        key = entry["key"]
        model = self._protocol["arms"][key["arm"]]["model"]
        model = model if key["training_seed"] is None else "%s@%d" % (model, key["training_seed"])
        self.require_canary(key, services)
        if self._runner["adapter"] == "openai":
            session = entry["session"]
            if not self._suspects.get(session, (None, False))[1]:
                self._suspects[session] = (model, False)
        if model in self._checks:
            since, attempts = self._checks[model]
            self._checks[model] = (since, attempts + 1)
        if model in self._pace:
            since, attempts = self._pace[model]
            self._pace[model] = (since, attempts + 1)

    def require_canary(self, key, services):
        """Nothing generates under a service that did not answer its canary as before."""
        if "canary" not in self._service:
            return
        model = self._protocol["arms"][key["arm"]]["model"]
        model = model if key["training_seed"] is None else "%s@%d" % (model, key["training_seed"])
        latest = [service for service in services.values() if service["model"] == model][-1:]
        verdict = latest[0]["canaries"].get("start") if latest else None
        require(verdict in ("reference", "same"), "the service had not answered the canary as before")

    def paused(self, entry):
        """The end of a session: of one whose service was found to be another one, the attempts that are in doubt."""
        session = entry["session"]
        if entry["reason"] != "service_changed" or session not in self._suspects or session in self._told:
            return
        model = self._suspects[session][0]
        since, attempts = self._checks.get(model, (entry["seq"], 0))
        self.swaps.append((model, entry["seq"], since, attempts))

    def stopped(self, entry, service):
        if "canary" in self._service and service is not None and entry["reason"] == "done":
            require("end" in service["canaries"], "the service was done, and there is no canary at its end")

    def _bytes(self, digest):
        data = self._pack.read(digest)
        if data is None and self._pack.number(digest) is not None:
            self._outcome.skip("what a service said that is redacted")
        return data

    def caveats(self):
        """What a report has to say of them."""
        found = []
        if "external" in self._service or "model_service" in self._runner:
            found.append("T%s: the plan accepts services that the gate did not start." % OPERATORS_WORD[1:])
        for model in _in_utf16_order({change[0] for change in self.changes}):
            own = ["entry %d (%s)" % (seq, ", ".join(changed)) for name, seq, changed in self.changes if name == model]
            more = " and %d more" % (len(own) - 10) if len(own) > 10 else ""
            found.append(
                "Services of %s (%s) described themselves otherwise than before: %s%s."
                % (model, self._arms_of(model), ", ".join(own[:10]), more)
            )
        for model, seq, since, attempts in self.doubts:
            found.append(
                "A service of %s (%s) answered the canary otherwise than the reference (entry %d): %d attempt%s "
                "started since entry %d may have met other weights or settings."
                % (model, self._arms_of(model), seq, attempts, "" if attempts == 1 else "s", since)
            )
        for model, seq, since, attempts in self.swaps:
            found.append(
                "A service of %s (%s) was found to be another one while it was in use, which ended the session (entry %d): "
                "%d attempt%s started since entry %d, its last good check, may have met another model."
                % (model, self._arms_of(model), seq, attempts, "" if attempts == 1 else "s", since)
            )
        return found

    def _arms_of(self, model):
        arms = [
            arm
            for arm in _in_utf16_order(self._protocol["arms"])
            for seed in training_seeds(self._protocol, arm)
            if model == (self._protocol["arms"][arm]["model"] + ("" if seed is None else "@%d" % seed))
        ]
        return ("arm " if len(arms) == 1 else "arms ") + (", ".join(arms) or "none")


# ---------------------------------------------------------------------------------------------------------------
# What a ledger may hold (docs/formats/attempts.md)
# ---------------------------------------------------------------------------------------------------------------


def _count_and_digest(slots):
    """Of slot ids, ascending."""
    return {"count": len(slots), "digest": digest_of("".join(one + "\n" for one in slots).encode("ascii"))}


_RECHECK = "boundbook/recheck/1\0"


def recheck_sample(stopped, fraction, manifest):
    """The slots of a recheck, ascending: the lowest by a hash over the manifest's digest and their ids."""
    digits = "" if fraction == "1" else fraction[2:]
    whole = 10 ** len(digits)
    count = -(-int(digits or whole) * len(stopped) // whole)
    ranked = sorted(stopped, key=lambda slot: hashlib.sha256((_RECHECK + manifest + slot).encode("ascii")).digest())
    return sorted(ranked[:count])


_SACCT_HEADER = "JobIDRaw|ElapsedRaw|AllocTRES"
_SACCT_COUNT = re.compile("(?:0|[1-9][0-9]{0,9})")


def read_sacct(data):
    """Seconds and GPUs by job, as an account of Slurm says; empty when it has not the form of docs/formats/results.md."""
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    accounts = {}
    if len(data) > 1 << 20 or not lines or lines[0] != _SACCT_HEADER:
        return {}
    for line in lines[1:]:
        fields = line.split("|")
        if len(fields) != 3 or not _SACCT_COUNT.fullmatch(fields[1]):
            return {}
        if "." in fields[0]:
            continue
        gpus = _sacct_gpus(fields[2])
        if not _SACCT_COUNT.fullmatch(fields[0]) or gpus is None or fields[0] in accounts:
            return {}
        accounts[fields[0]] = (int(fields[1]), gpus)
    return accounts


def _sacct_gpus(resources):
    """None where a count is none."""
    whole, typed = None, 0
    for part in resources.split(","):
        name, _, count = part.partition("=")
        if name != "gres/gpu" and not name.startswith("gres/gpu:"):
            continue
        if not _SACCT_COUNT.fullmatch(count):
            return None
        if name == "gres/gpu":
            whole = int(count)
        else:
            typed += int(count)
    return typed if whole is None else whole


class Session:
    """What one gate.passed opens."""

    __slots__ = ("process", "ended", "services", "services_stopped")

    def __init__(self, process):
        self.process = process
        self.ended = False
        self.services = {}
        self.services_stopped = set()


class Slot:
    """A slot for which an attempt was started, or that was carried. States: generating, grading, reported, failed,
    attributed, settled, unresolved. `row` is (queue, arm, training seed, evaluation seed), `task` a position."""

    __slots__ = (
        "row", "task", "rep", "state", "attempts", "attempt", "replacements", "regrades", "session", "candidate",
        "stage", "signals", "attribution", "by", "finished", "report", "value", "reason", "closed_by", "failure",
        "carried_from", "taken_over",
    )  # fmt: skip

    def __init__(self, row, task, rep):
        self.row = row
        self.task = task
        self.rep = rep
        self.state = "planned"
        self.attempts = self.replacements = self.regrades = 0
        self.attempt = self.session = self.candidate = self.stage = self.signals = self.attribution = None
        self.by = self.report = self.value = self.reason = self.closed_by = self.failure = self.carried_from = None
        self.taken_over = None
        self.finished = False

    @property
    def closed(self):
        return self.state in ("settled", "unresolved")


def awaits_verdict(slot):
    return slot.state == "unresolved" and slot.reason == "undetermined" and slot.by == "rule"


def is_judgeable(slot, revises=True):
    """Whether an adjudicator may give a verdict, for the first time or again."""
    if awaits_verdict(slot):
        return True
    return revises and slot.by == "adjudicator" and slot.state in ("unresolved", "attributed", "settled")


def put_items(secret, attempts, duplicates):
    """What each alias of a round stands for: (attempt, copy)."""

    def derive(*parts):
        return hmac.new(bytes.fromhex(secret), canonical_json(list(parts)), hashlib.sha256).hexdigest()

    twice = sorted(attempts, key=lambda attempt: derive("duplicate", attempt))[:duplicates]
    put = [(attempt, 0) for attempt in attempts] + [(attempt, 1) for attempt in twice]
    return {derive("alias", attempt, copy)[:16]: (attempt, copy) for attempt, copy in put}


class Round:
    """A round of adjudication that is not closed yet."""

    def __init__(self, entry, items):
        self.name = entry["round"]
        self.commitment = entry["commitment"]
        self.duplicates = entry["duplicates"]
        self.items = items
        self.committed = {}
        self.put = None
        self.opened = {}
        self.applied = set()
        self.moot = set()

    def counting(self):
        """The verdict and reason that count for each attempt: of two copies, those that were committed first."""
        found = {}
        for alias in self.committed:
            if alias in self.opened:
                found.setdefault(self.put[alias][0], self.opened[alias])
        return found

    def agreement(self):
        """Items of which both copies were judged, and how many of them alike."""
        verdicts = {}
        for alias, (verdict, _) in self.opened.items():
            verdicts.setdefault(self.put[alias][0], []).append(verdict)
        pairs = [both for both in verdicts.values() if len(both) == 2]
        return len(pairs), sum(first == second for first, second in pairs)


class Tally:
    """What a report counts."""

    def __init__(self):
        self.attempts = {"first": 0, "replacement": 0, "regrade": 0, "recovered": 0, "after_unblinding": 0}
        self.failures = {}
        self.finish_reasons = {}
        self.settled = {}
        self.unresolved = {}

    def close(self, slot, step):
        """Counts a slot in (step 1) or out (step -1) of what is closed in its queue."""
        counts = self.settled if slot.state == "settled" else self.unresolved
        counts[slot.row[0]] = counts.get(slot.row[0], 0) + step

    def fail(self, slot, stage, cause, attribution):
        """Counts the failure of the attempt in hand."""
        slot.failure = (slot.row[1], stage, cause, attribution)
        self.failures[slot.failure] = self.failures.get(slot.failure, 0) + 1

    def attribute(self, slot, attribution):
        """Moves the failure of the attempt in hand to another attribution."""
        self.failures[slot.failure] -= 1
        self.fail(slot, slot.failure[1], slot.failure[2], attribution)

    def finish(self, slot, reason):
        """Counts why a candidate ended: [known, truncated, unknown, looped] by arm."""
        counts = self.finish_reasons.setdefault(slot.row[1], [0, 0, 0, 0])
        counts[2 if reason is None else 0] += 1
        counts[1] += 1 if reason == "length" else 0
        counts[3] += 1 if reason == LOOP_STOP else 0


class LedgerAudit:
    """Judges the entries of one ledger, one after the other, in memory for its slots only."""

    def __init__(self, place, manifest, pack, redacted_ids, outcome):
        self.place = place
        self.manifest = manifest
        self.protocol = manifest.protocol
        self.pack = pack
        self.outcome = outcome
        self.predecessor = None
        self.manifests = {}
        self.tree = Tree()
        self.leaf = None
        self.opened = None
        self.plan = None
        self.slots = {}
        self.tally = Tally()
        self.unblinded = None
        self.checkpoints = {}
        self.noted = []
        self._redacted_ids = redacted_ids
        self._rules = Rules(self.protocol["attempts"]["rules"])
        self.services = Services(self.protocol, pack, outcome)
        self.evidence = None
        self.sessions = {}
        self._rows = {}
        self._time = ""
        self._incarnation = 0
        self.openings = []
        self._carrying = True
        self._carried_at = ()
        self.sealed_by = None
        self.unblinded_when_sealed = False
        self.successor = None
        self.carried = {"settled": 0, "unresolved": 0, "attempts": 0}
        self._selections = {}
        self._timestamps = set()
        self._mentioned = 0
        self._revived = self._revived_next = None
        self._round = None
        self._rounds = set()
        self._jobs = set()
        self._cut = set()
        self._regrading = self._grader = None
        self.regradings = []
        self._looped = set()
        self._recheck = None
        self.rechecks = []
        self._handlers = {
            "ledger.opened": self._ledger_opened,
            "slot.carried": self._slot_carried,
            "gate.passed": self._gate_passed,
            "gate.refused": self._gate_refused,
            "service.started": self._service_up,
            "service.attached": self._service_up,
            "service.described": self._of_service,
            "canary.recorded": self._of_service,
            "service.stopped": self._service_stopped,
            "attempt.started": self._attempt_started,
            "stage.finished": self._stage_finished,
            "attempt.finished": self._attempt_finished,
            "attempt.recovered": self._attempt_recovered,
            "attribution.recorded": self._attribution_recorded,
            "slot.settled": self._slot_settled,
            "slot.unresolved": self._slot_unresolved,
            "regrading.opened": self._regrading_opened,
            "regrading.resumed": self._regrading_resumed,
            "regrading.recorded": self._regrading_recorded,
            "regrading.closed": self._regrading_closed,
            "recheck.declared": self._recheck_declared,
            "recheck.started": self._recheck_started,
            "recheck.finished": self._recheck_finished,
            "recheck.closed": self._recheck_closed,
            "session.alive": self._session_alive,
            "account.recorded": self._account_recorded,
            "run.paused": self._run_paused,
            "unblinded": self._unblinded,
            "checkpoint": self._checkpoint,
            "deviation.noted": self._deviation_noted,
            "amended": self._amend,
            "adjudication.opened": self._round_opened,
            "verdict.committed": self._verdict_committed,
            "adjudication.revealed": self._round_revealed,
            "verdict.opened": self._verdict_opened,
            "adjudication.closed": self._round_closed,
        }

    @property
    def size(self):
        return self.tree.size

    @property
    def entry_place(self):
        return "%s, entry %d" % (self.place, self.size)

    def expect_schemas(self):
        """A pack begins with the report schemas that the manifest binds."""
        for name, binding in self.manifest.bindings.items():
            if name.startswith("report-schema/"):
                self._mention(binding["digest"])
                if self.pack.is_redacted(binding["digest"]):
                    self.outcome.find("OBJECT_MISSING", self.entry_place, "a redacted schema of reports")

    def _mention(self, digest):
        number = self.pack.number(digest)
        if number is None:
            self.outcome.find("OBJECT_MISSING", self.entry_place, digest)
        elif self.pack.mention(number):
            if number != self._mentioned:
                self.outcome.find("BUNDLE_FORM", self.entry_place, "%s is not where it is first mentioned" % digest)
            self._mentioned = number + 1

    # the chain

    def feed(self, body):
        """Judges the next entry, given its bytes."""
        entry = self._read_entry(body)
        if entry is not None:
            self._check_frame(entry)
            for digest in mentioned_objects(entry):
                self._mention(digest)
            self.judge(entry)
        self.leaf = leaf_hash(body)
        self.tree.append(self.leaf)

    def _read_entry(self, body):
        try:
            if len(body) > MAX_ENTRY_SIZE:
                raise Refusal("%d bytes" % len(body))
            entry = parse_canonical(body)
        except Refusal as refusal:
            self.outcome.find("CHAIN_BROKEN", self.entry_place, str(refusal))
            return None
        problem = ENTRY_FORM(entry)
        if problem:
            self.outcome.find("CHAIN_BROKEN", self.entry_place, problem.lstrip(": "))
            return None
        return entry

    def _check_frame(self, entry):
        expected = None if self.leaf is None else self.leaf.hex()
        if entry["seq"] != self.size:
            self.outcome.find("CHAIN_BROKEN", self.entry_place, "seq is %d" % entry["seq"])
        if entry["prev"] != expected:
            self.outcome.find("CHAIN_BROKEN", self.entry_place, "prev is not the leaf of the entry before")
        if entry["time"] < self._time:
            self.outcome.find("CHAIN_BROKEN", self.entry_place, "its time is before that of the entry before")
        self._time = max(self._time, entry["time"])

    def judge(self, entry):
        """Holds an entry of the right form against the rules, and follows it."""
        kind = entry["type"]
        self._revived, self._revived_next = self._revived_next, None
        try:
            require(self.opened is not None or kind == "ledger.opened", "a ledger begins with ledger.opened")
            self._handlers[kind](entry)
        except Violation as violation:
            self.outcome.find(violation.code, self.entry_place, "%s: %s" % (kind, violation))
        self._carrying = self._carrying and kind in ("ledger.opened", "slot.carried")

    # opening and sessions

    def _ledger_opened(self, entry):
        if self.opened is not None:
            self._reopened(entry)
            return
        self.opened = entry
        self._begin_incarnation(entry)
        self._note(entry["manifest"] == self.manifest.digest, "MANIFEST_FOREIGN", "it names another manifest")
        self._note(entry["manifest_object"] == entry["manifest"], "MANIFEST_FOREIGN", "manifest_object is another one")
        self._note(self.manifest.value["execution_ready"], "MANIFEST_NOT_READY", "the manifest is not ready")
        self._note(
            entry["time"] >= self.manifest.value["created"], "TIME_BEFORE_PLAN", "it is older than the manifest"
        )
        self._note(entry["incarnation"] == 1 and entry["restored"] is None, "UNLAWFUL", "the first incarnation is 1")
        self._note(entry["plan"] == self.manifest.value["plan"], "UNLAWFUL", "the plan is not that of the manifest")
        self._load_plan(entry)

    def _reopened(self, entry):
        same = ("ledger", "manifest", "manifest_object", "plan", "task_objects", "carries")
        restored, opened = entry["restored"], self.opened
        require(all(entry[name] == opened[name] for name in same), "not the ledger that was opened first")
        require(restored is not None, "a ledger is opened again only for a restored copy")
        require(restored["root"] is not None or restored["leaf"] is not None, "no state that was known outside")
        require(restored["size"] > self.size, "nothing was lost")
        incarnation = self._incarnation
        if restored["note"] is not None:
            incarnation = max(incarnation, self._incarnation_of(restored))
        require(entry["incarnation"] == incarnation + 1, "not the next incarnation")
        self._begin_incarnation(entry)

    def _begin_incarnation(self, entry):
        self._incarnation = entry["incarnation"]
        self.openings.append((self.size, entry["incarnation"]))

    def _incarnation_of(self, restored):
        """The incarnation in the origin of the note that a restored copy quotes."""
        try:
            checkpoint = parse_checkpoint(parse_note(restored["note"].encode("utf-8")).text)
        except Refusal as refusal:
            raise Violation("UNLAWFUL", "the note: %s" % refusal) from None
        require(checkpoint.size == restored["size"], "the note is of another size")
        require(checkpoint.root.hex() == restored["root"], "the note has another root")
        match = _ORIGIN.fullmatch(checkpoint.origin)
        require(match and match.group(2) == self.opened["ledger"], "the note is of another ledger")
        return int(match.group(3))

    def _note(self, condition, code, message):
        """Records a breach without stopping."""
        if not condition:
            self.outcome.find(code, self.entry_place, message)

    def _load_plan(self, entry):
        bound = {
            "tasks/" + name: self.manifest.bindings.get("tasks/" + name, {}).get("digest")
            for name, task_set in self.protocol["task_sets"].items()
            if "union_of" not in task_set
        }
        if entry["task_objects"] != bound:
            self.outcome.find("PLAN_DIFFERS", self.entry_place, "task_objects are not the bound task files")
            return
        try:
            sets = read_task_sets(self.protocol, self._read_task_file, self._redacted_ids)
            plan = Plan(self.protocol, sets)
        except Refusal as refusal:
            self.outcome.find("PLAN_DIFFERS", self.place, str(refusal))
            return
        if plan.digest() != self.manifest.value["plan"]:
            self.outcome.find("PLAN_DIFFERS", self.place, "the task files make another plan")
            return
        self.plan = plan
        self.evidence = Evidence(plan, self.pack, self.outcome, self.manifest.digest)

    def _read_task_file(self, name):
        data = self.pack.read(self.manifest.bindings["tasks/" + name]["digest"])
        if data is None:
            raise Refusal("the task file of %s is not there" % quote(name))
        return data

    def _session(self, entry, live):
        session = self.sessions.get(entry["session"])
        require(session is not None, "the session never passed the gate")
        require(not (live and session.ended), "the session has ended")
        return session

    def _gate_passed(self, entry):
        require(entry["manifest"] == self.manifest.digest, "another manifest")
        require(entry["session"] not in self.sessions, "the session was opened before")
        process = entry["process"]
        self.sessions[entry["session"]] = Session((process["boot_id"], process["pid"], process["started"]))
        self._jobs.add(entry["host"].get("slurm_job"))

    def _gate_refused(self, entry):
        require(entry["manifest"] == self.manifest.digest, "another manifest")

    def _run_paused(self, entry):
        self._session(entry, True).ended = True
        self.services.paused(entry)

    def _session_alive(self, entry):
        self._session(entry, True)

    def _regradable(self, conditions):
        """Ids of the slots that a report of these conditions settled, ascending."""
        arms = {arm for arm, one in self.protocol["arms"].items() if one["condition"] in conditions}
        settled = (raw.hex() for raw, slot in self.slots.items() if self._settled_by_report(slot, arms))
        return sorted(settled)

    @staticmethod
    def _settled_by_report(slot, arms):
        own = slot.carried_from is None and slot.row[1] in arms
        return own and slot.state == "settled" and slot.by == "report"

    def _regrading_opened(self, entry):
        conditions = entry["conditions"]
        require(self._regrading is None, "another regrading is not closed")
        require(all(entry["regrading"] != one["regrading"] for one in self.regradings), "it was opened before")
        known = set(conditions) <= set(self.protocol["conditions"]) and len(set(conditions)) == len(conditions)
        require(known, "not conditions of the protocol, each once")
        if self.plan is not None:
            require(_count_and_digest(self._regradable(conditions)) == entry["slots"], "not all slots that were settled")
        self._regrading = entry
        names = ("regrading", "time", "reason", "grader", "conditions")
        self.regradings.append(
            {
                **{name: entry[name] for name in names},
                "entry": self.size,
                "outputs": entry["slots"]["count"],
                "closed": False,
                "after_unblinding": self.unblinded is not None,
                "same": 0,
                "changed": [],
                "truncated": [],
                **({"failed": []} if "command" in entry else {}),
            }
        )
        self._regraded = set()
        self._grader = None
        self._grader = self._read_grader(entry["grader"], entry.get("command"))

    def _read_grader(self, digest, command):
        data = self.pack.read(digest)
        if data is None:
            return None
        try:
            grader = parse_json(data)
        except Refusal:
            grader = None
        form = by_member("kind", _READING_GRADERS) if command is None else _COMMAND_GRADER
        fits = form(grader) is None and (command is None or grader["sources"] != {})
        require(fits, "the object is no grader of the kind that is said", "REGRADING_DIFFERS")
        if command is not None:
            same = set(command["sources"]) == set(grader["sources"])
            same = same and ("schema" in command) == ("report_schema" in grader)
            require(same, "its files are not those that the grader names", "REGRADING_DIFFERS")
        return grader

    def _regrading_resumed(self, entry):
        require(self._regrading is not None and self._regrading["regrading"] == entry["regrading"], "it is not open")
        require("command" in self._regrading, "no process is named of a grader that reads answers")
        report = self.regradings[-1]
        report["resumed"] = report.get("resumed", 0) + 1

    def _regrading_recorded(self, entry):
        before, result, name = entry["before"], entry["result"], entry["slot"]
        require(self._regrading is not None and self._regrading["regrading"] == entry["regrading"], "it is not open")
        require(name not in self._regraded, "the slot was regraded before")
        by_command = "command" in self._regrading
        fits = by_command == ("stage" in entry) and result["kind"] != ("truncated" if by_command else "failed")
        require(fits, "a grader of this kind does not end so")
        if self.plan is None:
            return
        conditions = self._regrading["conditions"]
        arms = {arm for arm, one in self.protocol["arms"].items() if one["condition"] in conditions}
        slot = self.slots.get(bytes.fromhex(name))
        require(slot is not None and self._settled_by_report(slot, arms), "no report settled the slot")
        require((slot.report, slot.value) == (before["report"], before["value"]), "not what the slot settled on")
        self._regraded.add(name)
        report, key = self.regradings[-1], self.key_of(slot)
        if result["kind"] == "truncated":
            report["truncated"].append(key)
        elif result["kind"] == "failed":
            report["failed"].append({**key, "cause": result["signals"]["cause"]})
        elif result["value"] == before["value"]:
            report["same"] += 1
        else:
            report["changed"].append({**key, "before": before["value"], "after": result["value"]})
        require(slot.candidate == entry["candidate"], "not the candidate of the slot", "REGRADING_DIFFERS")
        if self._grader is not None and by_command:
            self.evidence.check_command_regrade(self._grader, entry, key)
        elif self._grader is not None:
            self.evidence.check_regrade(self._grader, name in self._cut, entry, key)

    def _regrading_closed(self, entry):
        require(self._regrading is not None and self._regrading["regrading"] == entry["regrading"], "it is not open")
        opened, report, self._regrading = self._regrading, self.regradings[-1], None
        if self.plan is None:
            return
        require(_count_and_digest(sorted(self._regraded)) == opened["slots"], "not all of its slots were recorded")
        counts = (len(report["changed"]), report["same"], len(report["truncated"]))
        require(counts == (entry["changed"], entry["same"], entry["truncated"]), "not the counts of what was recorded")
        failed = len(report["failed"]) if "command" in opened else None
        require(entry.get("failed") == failed, "not the number of those that failed")
        report["closed"] = True

    def _stopped(self):
        """Ids of the slots that settled on what the stop rule ended, ascending."""
        arms = {arm for arm in self.protocol["arms"] if "loop_stop" in self.plan.condition(arm)}
        return sorted(name for name in self._looped if self._settled_by_report(self.slots[bytes.fromhex(name)], arms))

    def _recheck_declared(self, entry):
        require(self.sealed_by is None, "the plan was amended")
        self._session(entry, True)
        require(self._recheck is None, "another recheck is not closed")
        require(all(entry["recheck"] != one["recheck"] for one in self.rechecks), "it was declared before")
        sample = []
        if self.plan is not None:
            closed = sum(slot.closed for slot in self.slots.values())
            require(closed == self.manifest.value["plan"]["count"], "slots of the plan are not closed")
            stopped = self._stopped()
            require(_count_and_digest(stopped) == entry["stopped"], "not the slots that the stop rule ended")
            sample = recheck_sample(stopped, entry["fraction"], self.manifest.digest)
            require(_count_and_digest(sample) == entry["sample"], "not the sample that is due")
        self._recheck = {"entry": entry, "sample": set(sample), "sent": {}, "ended": set()}
        self.rechecks.append(
            {
                "recheck": entry["recheck"],
                "entry": self.size,
                "time": entry["time"],
                "fraction": entry["fraction"],
                "closed": False,
                "after_unblinding": self.unblinded is not None,
                "outcome": {
                    "stopped": entry["stopped"]["count"],
                    "sample": entry["sample"]["count"],
                    "recovered": 0,
                    "not_recovered": 0,
                    "failed": 0,
                    "generated_tokens": 0,
                },
            }
        )

    def _open_recheck(self, entry):
        found = self._recheck
        require(found is not None and found["entry"]["recheck"] == entry["recheck"], "it is not open")
        return found

    def _recheck_started(self, entry):
        found, session, name = self._open_recheck(entry), self._session(entry, True), entry["slot"]
        require(self.sealed_by is None, "the plan was amended")
        if self.plan is None:
            return
        require(name in found["sample"], "the slot is not in the sample")
        require(name not in found["sent"], "the slot was started before")
        key = self.key_of(self.slots[bytes.fromhex(name)])
        self.services.require_canary(key, session.services)
        found["sent"][name] = entry["session"]
        self.evidence.check_recheck_start(entry, key)

    def _recheck_finished(self, entry):
        found, name, result = self._open_recheck(entry), entry["slot"], entry["result"]
        self._session(entry, True)
        if self.plan is None:
            return
        require(name in found["sent"] and name not in found["ended"], "the slot is not under way")
        lost = result["kind"] == "failure" and result["signals"]["cause"] == "process_gone"
        require(not (lost and entry["objects"]), "a process that is gone left nothing")
        require(lost or found["sent"][name] == entry["session"], "another session started it")
        slot = self.slots[bytes.fromhex(name)]
        kind = "failed"
        if result["kind"] == "graded":
            require(result["before"] == slot.value, "the slot settled on another value")
            kind = "recovered" if result["value"] > result["before"] else "not_recovered"
        found["ended"].add(name)
        outcome = self.rechecks[-1]["outcome"]
        outcome[kind] += 1
        outcome["generated_tokens"] += (entry["usage"] or {}).get("completion_tokens") or 0
        if result["kind"] == "failure":
            require(result["signals"]["stage"] == "generate", "not what this stage ends in", "STAGE_CONTRADICTS")
        self.evidence.check_recheck(entry, self.key_of(slot))

    def _recheck_closed(self, entry):
        found, report = self._open_recheck(entry), self.rechecks[-1]
        if self.plan is not None:
            require(found["ended"] == found["sample"], "not all of its sample has ended")
            counts = {name: report["outcome"][name] for name in ("recovered", "not_recovered", "failed")}
            require(all(entry[name] == count for name, count in counts.items()), "not the counts of what was recorded")
        self._recheck = None
        report["closed"] = True

    def _account_recorded(self, entry):
        require(entry["job"] in self._jobs, "no session ran in that job")
        data = self.pack.read(entry["object"])
        if data is None:
            return
        said = read_sacct(data).get(entry["job"])
        require(said == (entry["seconds"], entry["gpus"]), "not what the account says", "ACCOUNT_DIFFERS")

    def _service_up(self, entry):
        session, name = self._session(entry, True), entry["service"]
        known = name in session.services or name in session.services_stopped
        require(not known, "a service of this name was there before")
        self.services.up(entry)
        up = {name: entry[name] for name in ("seq", "model", "effective")}
        session.services[name] = {**up, "canaries": {}}

    def _of_service(self, entry):
        session, name = self._session(entry, True), entry["service"]
        service = session.services.get(name)
        require(service is not None and service["model"] == entry["model"], "the service was not started")
        require(name not in session.services_stopped, "the service was stopped before")
        require(self.protocol["runner"]["adapter"] == "openai", "a command has no service")
        if entry["type"] == "service.described":
            self.services.described(entry, service)
        else:
            self.services.canary(entry, service)

    def _service_stopped(self, entry):
        session = self._session(entry, False)
        require(entry["service"] not in session.services_stopped, "the service was stopped before")
        session.services_stopped.add(entry["service"])
        runner = self.protocol["runner"]
        declared = runner["service"]["gpus"] if runner["adapter"] == "openai" else entry["gpus"]
        require(entry["gpus"] == declared, "not the declared devices")
        self.services.stopped(entry, session.services.get(entry["service"]))

    # the life of a slot

    def _slot_of(self, entry):
        slot = self.slots.get(bytes.fromhex(entry["slot"]))
        if slot is None:
            require(self.plan is None, "no attempt was ever started for this slot")
        return slot

    def _require_open(self):
        """A sealed ledger takes nothing that names a slot, but late verdicts."""
        require(self.unblinded is None or self.unblinded["partial"], "outcomes were unblinded")
        require(self.sealed_by is None, "the plan was amended")

    def _attempt_started(self, entry):
        session = self._session(entry, True)
        self._require_open()
        if self.plan is None:
            return
        key = entry["key"]
        require(self.plan.has(key), "the slot is not planned")
        require(slot_id(slot_tuple(key)) == entry["slot"], "slot is not the id of its key")
        require(self.plan.sampling_seed(key) == entry["sampling_seed"], "another sampling seed than that of the slot")
        raw = bytes.fromhex(entry["slot"])
        slot = self.slots.get(raw) or self._new_slot(key)
        require(entry["attempt"] == attempt_id(entry["slot"], slot.attempts + 1), "not the id of the next attempt")
        self._check_kind(entry, slot)
        self.services.started(entry, session.services)
        self.slots[raw] = slot
        slot.session = session
        slot.attempts += 1
        slot.attempt = entry["attempt"]
        slot.state = "grading" if entry["kind"] == "regrade" else "generating"
        slot.candidate = entry["candidate"]
        slot.signals = slot.attribution = slot.by = slot.failure = slot.taken_over = None
        slot.finished = False
        slot.replacements += entry["kind"] == "replacement"
        slot.regrades += entry["kind"] == "regrade"
        self.tally.attempts[entry["kind"]] += 1
        self.tally.attempts["after_unblinding"] += self.unblinded is not None
        self.evidence.check_request(entry, entry["slot"])

    def _new_slot(self, key):
        row = (key["queue"], key["arm"], key["training_seed"], key["evaluation_seed"])
        row = self._rows.setdefault(row, row)
        return Slot(row, self.plan.tasks(key["queue"]).positions[key["task"]], key["rep"])

    def key_of(self, slot):
        queue, arm, training_seed, evaluation_seed = slot.row
        return {
            "queue": queue,
            "arm": arm,
            "training_seed": training_seed,
            "evaluation_seed": evaluation_seed,
            "task": self.plan.tasks(queue).ids[slot.task],
            "rep": slot.rep,
        }

    def _check_kind(self, entry, slot):
        if entry["kind"] == "first":
            require(slot.state == "planned", "a first attempt of a slot that has one")
            require(entry["of"] is None and entry["candidate"] is None, "a first attempt continues nothing")
            return
        require(
            slot.state == "attributed" and slot.finished and slot.attribution == "infrastructure",
            "nothing was lost to infrastructure",
        )
        require(entry["of"] == slot.attempt, "it does not continue the failed attempt")
        require(entry["candidate"] == slot.candidate, "another candidate than that of the failed attempt")
        require((entry["kind"] == "regrade") == (slot.candidate is not None), "not the kind that is due")
        require(self._another_is_allowed(slot), "beyond the limit")

    def _another_is_allowed(self, slot):
        limits = self.protocol["attempts"]
        if slot.candidate is None:
            return slot.replacements < limits["replacements"]
        return slot.regrades < limits["regrades"]

    def _stage_finished(self, entry):
        self._require_open()
        slot, result = self._slot_of(entry), entry["result"]
        if slot is None:
            return
        stage = {"generating": "generate", "grading": "grade"}.get(slot.state)
        require(stage is not None and entry["attempt"] == slot.attempt, "no stage of this attempt is under way")
        require(not slot.session.ended, "the session of the attempt has ended", "SESSION_OVER")
        follows = self._revived == entry["slot"]
        self._revived_next = self._revived if follows else None
        claims = result["kind"] == "failure" and "host_event" in result["signals"]
        require(follows or not claims, "no recovery shows that the boot changed", "RECOVERY_UNFOUNDED")
        named = result["signals"]["stage"] if result["kind"] == "failure" else entry["stage"]
        fits = {"candidate": stage == "generate", "report": stage == "grade", "failure": True}[result["kind"]]
        require(entry["stage"] == stage == named and fits, "not what this stage ends in", "STAGE_CONTRADICTS")
        graded = slot.candidate
        if result["kind"] == "report":
            require(result["candidate"] == graded, "another candidate than the one under grading")
            low, high = self.plan.reward_range(slot.row[1])
            require(low <= result["value"] <= high, "the value is outside the range of rewards")
            slot.state, slot.report, slot.value = "reported", result["report"], result["value"]
        elif result["kind"] == "candidate":
            slot.state, slot.candidate = "grading", result["candidate"]
            if entry["finish_reason"] in ("length", "loop_stop"):
                self._cut.add(entry["slot"])
            (self._looped.add if entry["finish_reason"] == LOOP_STOP else self._looped.discard)(entry["slot"])
            self.tally.finish(slot, entry["finish_reason"])
        else:
            slot.state, slot.stage, slot.signals = "failed", stage, result["signals"]
            self.tally.fail(slot, stage, result["signals"]["cause"], "pending")
        self.evidence.check_stage(entry, self.key_of(slot), graded, slot.regrades > 0, slot.taken_over)

    def _attempt_finished(self, entry):
        self._require_open()
        slot = self._slot_of(entry)
        if slot is None:
            return
        over = slot.state in ("reported", "attributed") and not slot.finished
        require(over and entry["attempt"] == slot.attempt, "this attempt has nothing to finish")
        require((entry["outcome"] == "report") == (slot.state == "reported"), "not its outcome")
        slot.finished = True

    def _attempt_recovered(self, entry):
        session = self._session(entry, False)
        self._require_open()
        slot = self._slot_of(entry)
        if slot is None:
            return
        left = {"nothing": ("generating",), "candidate": ("grading",), "end": ("generating", "grading")}[entry["found"]]
        require(slot.state in left and entry["attempt"] == slot.attempt, "not what this attempt had left")
        holder, finder, evidence = slot.session.process, session.process, entry["evidence"]
        reasons = ["abandoned"] if slot.session is session else []
        if holder[0] != finder[0]:
            reasons.append("boot_changed")
        else:
            reasons += ["same_process"] if holder == finder else ["process_gone", "pid_reused"]
        founded = (evidence["boot_id"], evidence["pid"]) == holder[:2] and evidence["reason"] in reasons
        require(founded, "the evidence does not say that the process was gone", "RECOVERY_UNFOUNDED")
        self.tally.attempts["recovered"] += 1
        slot.session = session
        if entry["found"] == "candidate":
            slot.taken_over = entry["session"]
        if entry["found"] == "end" and evidence["reason"] == "boot_changed":
            self._revived_next = entry["slot"]
        if entry["found"] == "nothing":
            slot.state, slot.stage, slot.candidate = "attributed", "generate", None
            slot.attribution, slot.by = "infrastructure", "rule"
            self.tally.fail(slot, "generate", "process_gone", "infrastructure")

    def _attribution_recorded(self, entry):
        slot = self._slot_of(entry)
        if entry["by"] == "adjudicator":
            self._adjudicate(entry, slot)
            return
        self._require_open()
        if slot is None:
            return
        require(slot.state == "failed" and entry["attempt"] == slot.attempt, "no failure waits for an attribution")
        require(not entry["late"], "a rule is never late")
        try:
            expected = self._rules.attribute(slot.signals)
            require((entry["attribution"], entry["rule"]) == expected, "not what the rules give")
        except Unsupported:
            self.outcome.skip("an attribution that rests on a pattern beyond the common part")
        slot.state, slot.attribution, slot.by = "attributed", entry["attribution"], "rule"
        self.tally.attribute(slot, entry["attribution"])

    def _adjudicate(self, entry, slot):
        require(entry["rule"] is None and entry["reason"] is not None, "a verdict has a reason and no rule")
        require(entry["late"] == (self.unblinded is not None), "late is what comes after unblinding, and nothing else")
        if not entry["late"]:
            self._require_open()
        self._require_verdict(entry)
        if slot is None:
            return
        waiting = slot.state == "unresolved" and slot.reason == "undetermined" and slot.by != "carried"
        own = slot.by == "adjudicator" and slot.state in ("unresolved", "attributed", "settled")
        require((waiting or own) and entry["attempt"] == slot.attempt, "nothing here waits for a verdict")
        if self._round is not None:
            self._round.applied.add(entry["attempt"])
        if entry["late"]:
            return
        if slot.closed:
            self.tally.close(slot, -1)
        slot.state, slot.attribution, slot.by, slot.finished = "attributed", entry["attribution"], "adjudicator", True
        slot.value = slot.reason = None
        self.tally.attribute(slot, entry["attribution"])

    # rounds of adjudication

    def _judgeable(self, revises):
        """Attempts that may be judged now, and the ids of their slots."""
        if self.sealed_by is not None and self.unblinded is None:
            return {}
        return {slot.attempt: raw.hex() for raw, slot in self.slots.items() if is_judgeable(slot, revises)}

    def _round_of(self, entry):
        require(self._round is not None and self._round.name == entry["round"], "this round is not open")
        return self._round

    def _round_opened(self, entry):
        require(self._round is None, "another round is open")
        require(entry["round"] not in self._rounds, "this round was held before")
        require(self.sealed_by is None or self.unblinded is not None, "the plan was amended")
        items = self._judgeable(entry["revises"])
        require(self.plan is None or len(items) == entry["items"], "not the number of slots that wait for a verdict")
        require(entry["duplicates"] <= entry["items"], "more duplicates than items")
        self._round = Round(entry, items)

    def _verdict_committed(self, entry):
        of = self._round_of(entry)
        require(of.put is None, "a verdict after the aliases were revealed")
        require(entry["alias"] not in of.committed, "a verdict on this alias was committed before")
        room = self.plan is None or len(of.committed) < len(of.items) + of.duplicates
        require(room, "more verdicts than items")
        of.committed[entry["alias"]] = entry["commitment"]

    def _round_revealed(self, entry):
        of = self._round_of(entry)
        require(of.put is None, "it was revealed before")
        committed = digest_of(canonical_json(["adjudication", of.name, entry["secret"]]))
        require(committed == of.commitment, "not the secret that the round was opened with")
        put = put_items(entry["secret"], list(of.items), of.duplicates)
        require(self.plan is None or all(alias in put for alias in of.committed), "a verdict on what is no item")
        of.put = put
        of.moot = set(of.items) - set(self._judgeable(True))

    def _verdict_opened(self, entry):
        of = self._round_of(entry)
        require(of.put is not None, "the aliases are not revealed yet")
        alias = entry["alias"]
        require(alias in of.committed, "no verdict was committed on this alias")
        require(alias not in of.opened, "it was opened before")
        if self.plan is None:
            of.put[alias] = (entry["attempt"], entry["copy"])
        else:
            require(of.put[alias] == (entry["attempt"], entry["copy"]), "the alias stands for another attempt")
            require(of.items[entry["attempt"]] == entry["slot"], "the attempt is of another slot")
        said = ["verdict", of.name, alias, entry["verdict"], entry["reason"], entry["nonce"]]
        require(digest_of(canonical_json(said)) == of.committed[alias], "not the verdict that was committed")
        of.opened[alias] = (entry["verdict"], entry["reason"])

    def _require_verdict(self, entry):
        """From the first round on, an adjudicator's attribution is what an opened verdict says."""
        if self._round is None and not self._rounds:
            return
        counting = {} if self._round is None else self._round.counting()
        require(entry["attempt"] in counting, "no opened verdict stands behind it")
        require(entry["attempt"] not in self._round.applied, "the verdict was applied before")
        said = (entry["attribution"], entry["reason"])
        require(counting[entry["attempt"]] == said, "it says something else than the verdict that counts")

    def _round_closed(self, entry):
        of = self._round_of(entry)
        if entry["abandoned"] is None:
            require(of.put is not None, "the aliases were never revealed")
            require(len(of.opened) == len(of.committed), "committed verdicts were not opened")
            left = set(of.counting()) - of.moot - of.applied
            require(self.plan is None or not left, "verdicts that count were not applied")
        else:
            require(of.put is None, "its aliases were revealed: it is closed, not abandoned")
        counts = (entry["verdicts"], entry["pairs"], entry["agreeing"])
        require(counts == (len(of.opened),) + of.agreement(), "not the counts of the round")
        self._rounds.add(of.name)
        self._round = None

    def _slot_settled(self, entry):
        self._require_open()
        slot, basis = self._slot_of(entry), entry["basis"]
        if slot is None:
            return
        require(slot.finished and basis["attempt"] == slot.attempt, "no attempt of this slot has ended in a value")
        if basis["kind"] == "report":
            require(slot.state == "reported" and basis["report"] == slot.report, "not the report of this slot")
            require(entry["value"] == slot.value, "not the value of the report")
            slot.by = "report"
        else:
            require(slot.state == "attributed" and slot.attribution == "model", "no failure of the model")
            require(entry["value"] == 0, "a failure of the model counts 0")
        self._close(slot, "settled")
        slot.value = entry["value"]

    def _slot_unresolved(self, entry):
        self._require_open()
        slot = self._slot_of(entry)
        if slot is None:
            return
        require(slot.state == "attributed" and slot.finished, "no failed attempt of this slot has ended")
        if entry["reason"] == "undetermined":
            require(slot.attribution == "undetermined", "the failure is attributed")
        else:
            require(slot.attribution == "infrastructure", "no limit applies")
            require(not self._another_is_allowed(slot), "another attempt is within the limits")
        self._close(slot, "unresolved")
        slot.reason = entry["reason"]

    def _close(self, slot, state):
        slot.state, slot.closed_by, slot.signals = state, self.size, None
        self.tally.close(slot, 1)

    def _slot_carried(self, entry):
        require(self._carrying and self.opened["carries"] is not None, "nothing is carried here")
        if self.plan is None:
            return
        key, outcome, raw = entry["key"], entry["outcome"], bytes.fromhex(entry["slot"])
        require(self.plan.has(key), "the slot is not planned")
        require(slot_id(slot_tuple(key)) == entry["slot"], "slot is not the id of its key")
        require(raw not in self.slots, "the slot was carried before")
        position = self.plan.position(key)
        self._note(position > self._carried_at, "CARRIED_DIFFERS", "not in the order of the plan")
        self._carried_at = position
        limits = self.protocol["attempts"]
        require(entry["attempts"] <= 1 + limits["replacements"] + limits["regrades"], "more attempts than are allowed")
        slot = self._new_slot(key)
        if outcome["kind"] == "settled":
            basis = outcome["basis"]
            require(basis["attempt"] == attempt_id(entry["slot"], entry["attempts"]), "it rests on another attempt")
            low, high = self.plan.reward_range(key["arm"])
            require(low <= outcome["value"] <= high, "the value is outside the range of rewards")
            require(basis["kind"] == "report" or outcome["value"] == 0, "a failure of the model counts 0")
            slot.value, slot.report, slot.attempt = outcome["value"], basis.get("report"), basis["attempt"]
        else:
            slot.reason = outcome["reason"]
        slot.attempts, slot.by, slot.carried_from = entry["attempts"], "carried", entry["closed_by"]
        self.carried[outcome["kind"]] += 1
        self.carried["attempts"] += entry["attempts"]
        self.slots[raw] = slot
        self._close(slot, outcome["kind"])

    # unblinding, amendments, deviations, checkpoints

    def _unblinded(self, entry):
        first, self.unblinded = self.unblinded is None, self.unblinded or entry
        require(first, "outcomes were unblinded before")
        if self.plan is None:
            return
        settled, unresolved = sum(self.tally.settled.values()), sum(self.tally.unresolved.values())
        planned = self.manifest.value["plan"]["count"]
        counts = {
            "planned": planned,
            "settled": settled,
            "unresolved": unresolved,
            "pending": planned - settled - unresolved,
        }
        require({name: entry[name] for name in counts} == counts, "not the counts of the ledger")
        if not entry["partial"]:
            require(self.sealed_by is None, "the plan was amended")
            require(settled + unresolved == len(self.slots), "an attempt is open")
            require(self._round is None, "a round of adjudication is open")
            if self.protocol["attempts"].get("adjudication") == "required":
                require(not any(map(awaits_verdict, self.slots.values())), "a slot waits for its adjudication")
            for name, queue in self.protocol["queues"].items():
                closed = self.tally.settled.get(name, 0) + self.tally.unresolved.get(name, 0)
                complete = queue["role"] != "confirmatory" or closed == self.plan.count(name)
                require(complete, "the queue %s is not complete" % quote(name))

    def _amend(self, entry):
        require(self.sealed_by is None, "the plan was amended before")
        self.sealed_by, self.unblinded_when_sealed = entry, self.unblinded is not None
        self.successor = {
            "manifest": entry["successor"],
            "revision": entry["revision"],
            "reason": entry["reason"],
            "entry": self.size,
        }
        require(entry["successor"] != self.manifest.digest, "a plan that succeeds itself")
        require(entry["revision"] > self.protocol["revision"], "not a later revision")

    def _deviation_noted(self, entry):
        self.noted.append(
            {
                "entry": self.size,
                "time": entry["time"],
                "text": entry["text"],
                "selector": entry["selector"],
                "slots": entry["slots"]["count"],
                "slots_digest": entry["slots"]["digest"],
                "after_unblinding": self.unblinded is not None,
            }
        )
        if self.plan is not None:
            same = self._selected(entry["selector"]) == entry["slots"]
            require(same, "slots is not what the selector selects", "DEVIATION_DIFFERS")

    def _selected(self, selector):
        """Number and digest of the planned slots that a selector accepts."""
        label = canonical_text(selector)
        if label not in self._selections:
            self._selections[label] = self.plan.select(selector)
        return self._selections[label]

    def _checkpoint(self, entry):
        require(entry["size"] == self.size, "size is not its own position")
        stamps = entry["timestamps"]
        require(len(set(stamps)) == len(stamps) and not self._timestamps & set(stamps), "a time stamp named before")
        self._timestamps.update(stamps)
        require(entry["root"] == self.tree.root().hex(), "root is not that of the entries before", "CHECKPOINT_DIFFERS")
        if entry["note"] is not None:
            try:
                self.checkpoints[self.size] = self._read_note(entry["note"])
            except Refusal as refusal:
                raise Violation("CHECKPOINT_DIFFERS", "the note: %s" % refusal) from None

    def _read_note(self, written):
        note = parse_note(written.encode("utf-8"))
        checkpoint = parse_checkpoint(note.text)
        if (checkpoint.size, checkpoint.root) != (self.size, self.tree.root()):
            raise Refusal("it says another size or root")
        ending = "/%s/%d" % (self.opened["ledger"] if self.opened else "", self._incarnation)
        if not checkpoint.origin.endswith(ending) or len(checkpoint.origin) == len(ending):
            raise Refusal("its origin is not this ledger in this incarnation")
        if all(name != checkpoint.origin for name, _, _ in note.signatures):
            raise Refusal("no signature under the name of its origin")
        return note


# ---------------------------------------------------------------------------------------------------------------
# Bounds (docs/formats/results.md), in exact fractions
# ---------------------------------------------------------------------------------------------------------------


def exact(value):
    """The fraction that the shortest decimal form of a number names."""
    return Fraction(value) if type(value) is int else Fraction(format_number(value))


def figure(value):
    return {"exact": str(value), "value": _nearest_double(value)}


def _nearest_double(value):
    try:
        return value.numerator / value.denominator
    except OverflowError:
        raise Refusal("a figure beyond the range of doubles") from None


def mean(values):
    return sum(values, Fraction(0)) / len(values)


def variance(values):
    """The sample variance: Σ(x − x̄)²/(n − 1)."""
    centre = mean(values)
    return sum(((value - centre) ** 2 for value in values), Fraction(0)) / (len(values) - 1)


class Bound:
    """Lower and upper end of what a figure can be."""

    def __init__(self, lower, upper):
        self.lower = lower
        self.upper = upper

    def minus(self, other):
        return Bound(self.lower - other.upper, self.upper - other.lower)

    def to_json(self):
        return {"lower": figure(self.lower), "upper": figure(self.upper)}


def mean_bound(bounds):
    return Bound(mean([bound.lower for bound in bounds]), mean([bound.upper for bound in bounds]))


class Cell:
    """The rollouts of one task by one set of weights: planned, settled, their sum and sum of squares."""

    __slots__ = ("planned", "settled", "unresolved", "sum", "squares")

    def __init__(self, planned):
        self.planned = planned
        self.settled = self.unresolved = 0
        self.sum = self.squares = 0

    def add(self, value):
        value = value if type(value) is int else exact(value)
        self.settled += 1
        self.sum += value
        self.squares += value * value

    def merged_with(self, other):
        cell = Cell(self.planned + other.planned)
        for name in ("settled", "unresolved", "sum", "squares"):
            setattr(cell, name, getattr(self, name) + getattr(other, name))
        return cell

    @property
    def complete(self):
        return self.settled == self.planned

    def mean(self):
        return Fraction(self.sum) / self.planned

    def bound(self, low, high):
        open_count = self.planned - self.settled
        return Bound(
            (self.sum + open_count * low) / Fraction(self.planned), (self.sum + open_count * high) / Fraction(self.planned)
        )


class Row:
    """The cells of one set of weights, one for each task of a list."""

    def __init__(self, cells, reward):
        self.cells = cells
        self.low, self.high = exact(reward[0]), exact(reward[1])

    @property
    def complete(self):
        return all(cell.complete for cell in self.cells)

    def bound(self):
        return mean_bound([cell.bound(self.low, self.high) for cell in self.cells])

    def counts(self):
        planned = sum(cell.planned for cell in self.cells)
        settled = sum(cell.settled for cell in self.cells)
        unresolved = sum(cell.unresolved for cell in self.cells)
        return {
            "planned": planned,
            "settled": settled,
            "unresolved": unresolved,
            "pending": planned - settled - unresolved,
        }

    def score(self):
        return mean([cell.mean() for cell in self.cells])

    def standard_error(self):
        """Of the score, over the rollouts of the tasks; None when it cannot be estimated."""
        if not self.complete or any(cell.planned < 2 for cell in self.cells):
            return None
        total = Fraction(0)
        for cell in self.cells:
            n = cell.planned
            total += (cell.squares - Fraction(cell.sum) ** 2 / n) / (n * (n - 1))
        return math.sqrt(_nearest_double(total)) / len(self.cells)

    def saturation(self, level):
        """What is said when every rollout has the least or the greatest reward of a 0 to 1 scale."""
        if not self.complete or (self.low, self.high) != (0, 1):
            return None
        total, tasks = sum(cell.sum for cell in self.cells), len(self.cells)
        if total not in (0, sum(cell.planned for cell in self.cells)):
            return None
        quantile_at = (1 + level) / 2
        squared = statistics.NormalDist().inv_cdf(quantile_at) ** 2 if quantile_at < 1 else math.inf
        low, high = (0, 1 / (tasks / squared + 1)) if total == 0 else (tasks / (tasks + squared), 1)
        return {
            "at": "lowest" if total == 0 else "highest",
            "tasks": tasks,
            "wilson": {"low": low, "high": high, "level": level},
        }


def spread(values):
    """Of exact values; None for fewer than two."""
    if len(values) < 2:
        return None
    return {
        "count": len(values),
        "standard_deviation": math.sqrt(_nearest_double(variance(values))),
        "min": figure(min(values)),
        "max": figure(max(values)),
    }


class QueueResults:
    """All cells of a queue."""

    def __init__(self, plan, queue, slots):
        self.plan = plan
        self.queue = queue
        self.declared = plan.protocol["queues"][queue]
        count = len(plan.tasks(queue).ids)
        self._cells = {row: [Cell(self.declared["reps"]) for _ in range(count)] for row in plan.rows(queue)}
        for slot in slots:
            if slot.row[0] == queue and slot.state == "settled":
                self._cells[slot.row[1:]][slot.task].add(slot.value)
            elif slot.row[0] == queue and slot.state == "unresolved":
                self._cells[slot.row[1:]][slot.task].unresolved += 1

    def row(self, arm, seed, tasks, evaluation_seed=None):
        """The row of a set of weights over task positions: over all evaluation seeds, or over one of them."""
        seeds = evaluation_seeds(self.declared) if evaluation_seed is None else [evaluation_seed]
        cells = [self._cells[(arm, seed, seeds[0])][task] for task in tasks]
        for other in seeds[1:]:
            more = self._cells[(arm, seed, other)]
            cells = [cell.merged_with(more[task]) for cell, task in zip(cells, tasks)]
        return Row(cells, self.plan.reward_range(arm))

    def pairs(self, contrast):
        """The (minuend seed, subtrahend seed) of a contrast."""
        first, second = [training_seeds(self.plan.protocol, contrast[side]) for side in ("minuend", "subtrahend")]
        if first == [None]:
            return [(None, seed) for seed in second]
        if second == [None]:
            return [(seed, None) for seed in first]
        return [(seed, seed) for seed in first if seed in second]


def decide(decision, bound):
    """(status, conclusion) of a decision; bound is None without a pair."""
    holds = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}[decision["comparator"]]
    ends = [] if bound is None else [holds(end, exact(decision["threshold"])) for end in (bound.lower, bound.upper)]
    status = "undecided" if len(set(ends)) != 1 else "met" if ends[0] else "not_met"
    return status, decision["when_met" if status == "met" else "otherwise"]


# ---------------------------------------------------------------------------------------------------------------
# Intervals: two-way bootstrap (docs/formats/results.md, Intervals)
# ---------------------------------------------------------------------------------------------------------------

MAX_DRAWS = 5_000_000
MAX_PRODUCTS = 50_000_000


class Generator:
    """ARC4, read as the doubles of seedrandom 3.0.5."""

    def __init__(self, seed):
        key = str(seed).encode("ascii")
        self._state = list(range(256))
        self._i = self._j = 0
        j = 0
        for i in range(256):
            j = (j + self._state[i] + key[i % len(key)]) & 255
            self._state[i], self._state[j] = self._state[j], self._state[i]
        for _ in range(256):
            self._byte()

    def _byte(self):
        state = self._state
        self._i = (self._i + 1) & 255
        t = state[self._i]
        self._j = (self._j + t) & 255
        state[self._i] = state[self._j]
        state[self._j] = t
        return state[(state[self._i] + t) & 255]

    def uniform(self):
        """A double in [0, 1) with 52 bits or more."""
        n, d, x = 0, 2**48, 0
        for _ in range(6):
            n = n * 256 + self._byte()
        while n < 2**52:
            n, d, x = (n + x) * 256, d * 256, self._byte()
        n, d = float(n), float(d)
        while n >= 2.0**53:
            n, d, x = n / 2, d / 2, x // 2
        return (n + x) / d

    def index(self, below):
        return int(self.uniform() * below)


def draw_counts(seed, resamples, pairs, tasks):
    """For each resample, how often each pair and each task is drawn. A single pair is not drawn."""
    generator = Generator(seed)
    for _ in range(resamples):
        pair_counts, task_counts = [0] * pairs, [0] * tasks
        if pairs == 1:
            pair_counts[0] = 1
        else:
            for _ in range(pairs):
                pair_counts[generator.index(pairs)] += 1
        for _ in range(tasks):
            task_counts[generator.index(tasks)] += 1
        yield pair_counts, task_counts


def wilson_interval(successes, count, level):
    """Wilson's score interval for a rate."""
    z, rate = statistics.NormalDist().inv_cdf((1 + level) / 2), successes / count
    scale = 1 + z * z / count
    center = (rate + z * z / (2 * count)) / scale
    half = z / scale * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    low = 0 if successes == 0 else max(0, center - half)
    high = 1 if successes == count else min(1, center + half)
    return {"low": nearly(low), "high": nearly(high), "level": level}


def resampled_statistics(differences, counts):
    """The mean difference of each resample, in doubles. differences[i][j] is exact, of pair i and task j."""
    cells = len(differences) * len(differences[0])
    scale = math.lcm(*[value.denominator for row in differences for value in row])
    limit = MAX_SAFE_INTEGER // cells
    scaled = [[int(value * scale) for value in row] for row in differences]
    if scale <= limit and all(abs(value) <= limit for row in scaled for value in row):
        rows, divisor = scaled, scale * cells
    else:
        rows, divisor = [[_nearest_double(value) for value in row] for row in differences], cells
    found = []
    for pair_counts, task_counts in counts:
        total = 0
        for times, row in zip(pair_counts, rows):
            part = 0
            for count, value in zip(task_counts, row):
                part += count * value
            total += times * part
        found.append(total / divisor)
    return found


def _sum_in_order(values):
    """A plain sum of doubles; the built-in one compensates in newer versions of Python."""
    total = 0.0
    for value in values:
        total += value
    return total


def population_variance(values):
    """Σ(x − x̄)²/n over doubles, in order."""
    centre = _sum_in_order(values) / len(values)
    return _sum_in_order([(value - centre) * (value - centre) for value in values]) / len(values)


def quantile(ordered, p):
    """Type 7 quantile of ascending values."""
    h = (len(ordered) - 1) * p
    low = math.floor(h)
    if low + 1 >= len(ordered):
        return ordered[-1]
    return ordered[low] + (h - low) * (ordered[low + 1] - ordered[low])


def exact_variances(differences):
    """(all, of pairs, of tasks, of both together) as population variances."""
    rows = [mean(row) for row in differences]
    columns = [mean(column) for column in zip(*differences)]
    grand = mean(rows)
    pairs, tasks = len(rows), len(columns)
    of_tasks = sum(((value - grand) ** 2 for value in columns), Fraction(0)) / tasks / tasks
    if pairs == 1:
        return of_tasks, Fraction(0), of_tasks, Fraction(0)
    of_pairs = sum(((value - grand) ** 2 for value in rows), Fraction(0)) / pairs / pairs
    rest = sum(
        ((value - rows[i] - columns[j] + grand) ** 2 for i, row in enumerate(differences) for j, value in enumerate(row)),
        Fraction(0),
    )
    together = rest / (pairs * tasks) / (pairs * tasks)
    return of_pairs + of_tasks + together, of_pairs, of_tasks, together


# ---------------------------------------------------------------------------------------------------------------
# The report (docs/formats/results.md). An expected report holds a check in place of each text that is not compared
# ---------------------------------------------------------------------------------------------------------------

MAX_REPORT_SIZE = 256 * 2**20
_PROSE = text()
_PROSES = list_of(text())


def _with_prose(required):
    """Prose of which only these sentences are judged."""

    def check(value):
        missing = [] if _PROSES(value) else [line for line in required if line not in value]
        return _PROSES(value) or (": it does not say: %s" % missing[0] if missing else None)

    return check


def anything(_):
    return None


def nearly(expected):
    """A double up to its last digits."""

    def check(value):
        if number()(value):
            return ": not a number"
        return None if math.isclose(value, expected, rel_tol=1e-12) else ": %r, expected %r" % (value, expected)

    return check


def revisions_of(manifest, manifests):
    """What the report says of the revisions: the latest amendment first, down to the first plan that is at hand."""
    told = []
    while manifest is not None and manifest.value["supersedes"] is not None:
        value, before = manifest.value, manifests.get(manifest.value["supersedes"])
        told.append(
            {
                "revision": value["revision"],
                "manifest": manifest.digest,
                "supersedes": value["supersedes"],
                "reason": value["reason"],
                "exposure": {
                    name: value["exposure"][name] for name in ("slots_run", "settled", "unblinded", "declared")
                },
                "changes": None if before is None else changes_between(before, manifest),
            }
        )
        manifest = before
    return told


def changes_between(before, after):
    """What a manifest changes of the one that it supersedes."""
    older, newer = before.protocol, after.protocol
    return {
        "slots": {"before": _planned_count(before), "after": _planned_count(after)},
        "dropped": lost_parts(older, newer),
        "added": lost_parts(newer, older),
        "analysis": _analysis_changes(older["analysis"], newer["analysis"]),
        "protocol": sorted(
            (
                name
                for name in set(older) | set(newer)
                if name not in ("boundbook", "name", "revision") and not _is_same(older.get(name), newer.get(name))
            ),
            key=_utf16_order,
        ),
        "bindings": [
            name
            for name, binding in after.bindings.items()
            if name in before.bindings and before.bindings[name]["digest"] != binding["digest"]
        ],
    }


def _planned_count(manifest):
    return None if manifest.value["plan"] is None else manifest.value["plan"]["count"]


def _is_same(value, other):
    return canonical_json(value) == canonical_json(other)


def _analysis_changes(older, newer):
    """Declared parts by id: what is gone, what is new, what says something else."""
    changes = {"dropped": [], "added": [], "changed": []}
    for kind in ("score", "contrast", "table", "decision"):
        was, now = ({part["id"]: part for part in side.get(kind + "s", [])} for side in (older, newer))
        changes["dropped"] += ["%s %s" % (kind, name) for name in was if name not in now]
        changes["added"] += ["%s %s" % (kind, name) for name in now if name not in was]
        changes["changed"] += [
            "%s %s" % (kind, name) for name in now if name in was and not _is_same(was[name], now[name])
        ]
    return changes


def lost_parts(protocol, other):
    """Parts of a protocol that another one has not, each with the slots that this protocol has in it."""
    parts = []
    for name in sorted(protocol["queues"], key=_utf16_order):
        queue, kept = protocol["queues"][name], other["queues"].get(name)
        tasks, reps = protocol["task_sets"][queue["tasks"]]["count"], queue["reps"]
        weights = {arm: training_seeds(protocol, arm) for arm in queue["arms"]}
        models, evaluations = sum(len(seeds) for seeds in weights.values()), evaluation_seeds(queue)

        def add(kind, label, slots, name=name):
            parts.append({"kind": kind, "queue": name, "name": label, "slots": slots})

        if kept is None:
            add("queue", "", tasks * reps * models * len(evaluations))
            continue
        for arm in sorted(weights, key=_utf16_order):
            each = tasks * reps * len(evaluations)
            if arm not in kept["arms"]:
                add("arm", arm, each * len(weights[arm]))
                continue
            for seed in weights[arm]:
                if seed not in training_seeds(other, arm):
                    add("training_seed", "%s@%s" % (arm, "null" if seed is None else seed), each)
        for seed in evaluations:
            if seed not in evaluation_seeds(kept):
                add("evaluation_seed", str(seed), tasks * reps * models)
        if reps > kept["reps"]:
            add("reps", "%d to %d" % (reps, kept["reps"]), tasks * (reps - kept["reps"]) * models * len(evaluations))
        fewer = other["task_sets"][kept["tasks"]]["count"]
        if tasks > fewer:
            add("tasks", "%d to %d" % (tasks, fewer), (tasks - fewer) * reps * models * len(evaluations))
    return parts


class ReportBuilder:
    """Computes the report of a ledger at its present position."""

    def __init__(self, audit):
        self._audit = audit
        self._plan = audit.plan
        self._protocol = audit.protocol
        self._analysis = audit.protocol["analysis"]
        self._manifest = audit.manifest.value
        self._draws = {}
        self._results = {}
        self._revisions = revisions_of(audit.manifest, audit.manifests)
        post_hoc = any(one["exposure"]["unblinded"] for one in self._revisions)
        partial = audit.unblinded is not None and audit.unblinded["partial"]
        reasons = (("post hoc", post_hoc), ("unblinded in part", partial), ("superseded", audit.successor is not None))
        self._demoted = [name for name, holds in reasons if holds]
        self._amended = None if not self._revisions else "post hoc" if post_hoc else "before unblinding"

    def visibility(self):
        unblinded = self._audit.unblinded
        if unblinded is None:
            return "blinded"
        return "unblinded_partially" if unblinded["partial"] else "unblinded"

    def build(self):
        audit, manifest, protocol = self._audit, self._manifest, self._protocol
        shown = audit.unblinded is not None
        return {
            "schema": "boundbook/report/1",
            "amendment": self._amended,
            "demoted": self._demoted,
            "revisions": self._revisions,
            "successor": audit.successor,
            "carried": self._carried(),
            "protocol": {name: manifest[name] for name in ("name", "revision", "title", "due")},
            "manifest": {
                "digest": audit.manifest.digest,
                "sequence": manifest["sequence"],
                "supersedes": manifest["supersedes"],
                "task_use": [{"binding": use["binding"], "plans": use["plans"]} for use in manifest["task_use"]],
            },
            "plan": {"slots": manifest["plan"]["count"], "digest": manifest["plan"]["digest"]},
            "ledger": {
                "name": audit.opened["ledger"],
                "entries": audit.size,
                "leaf": audit.leaf.hex(),
                "root": audit.tree.root().hex(),
            },
            "blinding": protocol["blinding"],
            "visibility": self.visibility(),
            "coverage": self.coverage(),
            "arms": [self._arm(arm) for arm in _in_utf16_order(protocol["arms"])],
            "results": [self.queue(queue) for queue in self._queues_in_order()] if shown else None,
            "attempts": dict(audit.tally.attempts),
            "failures": self._failures() if shown else None,
            "truncation": self._truncation() if shown else None,
            "costs": anything,
            **self._regradings(shown),
            **self._rechecks(shown),
            "noted": list(audit.noted),
            "deviations": anything,
            "notes": _PROSES,
            "interval_notes": _PROSES,
            "caveats": _with_prose(audit.services.caveats()),
            "not_checked": _PROSES,
        }

    def _regradings(self, shown):
        names = ("outputs", "same", "changed", "truncated", "failed")
        found = [
            one if shown else {**one, **{name: None for name in names if name in one}} for one in self._audit.regradings
        ]
        return {"regradings": found} if found else {}

    def _rechecks(self, shown):
        found = []
        for one in self._audit.rechecks:
            outcome = None
            if shown:
                counts, level = one["outcome"], self._analysis["interval"]["level"]
                graded = counts["recovered"] + counts["not_recovered"]
                interval = wilson_interval(counts["recovered"], graded, level) if graded else None
                outcome = {**counts, "interval": interval}
            found.append({**one, "outcome": outcome})
        return {"rechecks": found} if found else {}

    def _carried(self):
        carries = self._audit.opened["carries"]
        if carries is None:
            return None
        names = ("manifest", "ledger", "root", "again", "dropped")
        return {**{name: carries[name] for name in names}, "entries": carries["size"], **self._audit.carried}

    def bounds(self):
        """The bounds of scores and contrasts as {of, lower, upper}, with exact fractions."""
        rows = []
        for name in self._queues_in_order():
            results, everything = self.results_of(name), range(len(self._plan.tasks(name).ids))
            for arm in results.declared["arms"]:
                for seed in training_seeds(self._protocol, arm):
                    label = arm if seed is None else "%s@%d" % (arm, seed)
                    bound = results.row(arm, seed, everything).bound()
                    rows.append({"of": "%s, %s" % (name, label), "lower": str(bound.lower), "upper": str(bound.upper)})
            for contrast in self._analysis["contrasts"]:
                bound = self.contrast_bound(results, contrast, everything) if contrast["queue"] == name else None
                if bound is not None:
                    label = "%s, %s − %s" % (name, contrast["minuend"], contrast["subtrahend"])
                    rows.append({"of": label, "lower": str(bound.lower), "upper": str(bound.upper)})
        return rows

    def exposed_bounds(self):
        """The bounds that an exposure tells, by name, as nearest doubles."""
        found = {}
        for queue in {score["queue"] for score in self._analysis["scores"]}:
            results, everything = self.results_of(queue), range(len(self._plan.tasks(queue).ids))
            for arm in results.declared["arms"]:
                rows = [results.row(arm, seed, everything) for seed in training_seeds(self._protocol, arm)]
                found["score:%s:%s" % (queue, arm)] = mean_bound([row.bound() for row in rows])
        for contrast in self._analysis["contrasts"]:
            results = self.results_of(contrast["queue"])
            everything = range(len(self._plan.tasks(contrast["queue"]).ids))
            bound = self.contrast_bound(results, contrast, everything)
            if bound is not None:
                found["contrast:%s" % contrast["id"]] = bound
        ends = {name: (figure(bound.lower), figure(bound.upper)) for name, bound in found.items()}
        return {name: {"lower": low["value"], "upper": high["value"]} for name, (low, high) in ends.items()}

    def _counts(self, queue):
        tally, planned = self._audit.tally, self._plan.count(queue)
        settled, unresolved = tally.settled.get(queue, 0), tally.unresolved.get(queue, 0)
        return {
            "planned": planned,
            "settled": settled,
            "unresolved": unresolved,
            "pending": planned - settled - unresolved,
        }

    def coverage(self):
        """What is planned, settled, unresolved and pending, by queue and in all."""
        queues = []
        for name in self._plan.queues:
            queue = self._protocol["queues"][name]
            head = {"queue": name, "role": queue["role"], "tasks": len(self._plan.tasks(name).ids)}
            seeds = {"reps": queue["reps"], "evaluation_seeds": evaluation_seeds(queue)}
            queues.append({**head, **seeds, **self._counts(name)})
        names = ("planned", "settled", "unresolved", "pending")
        return {"total": {name: sum(queue[name] for queue in queues) for name in names}, "queues": queues}

    def _arm(self, name):
        arm, (low, high) = self._protocol["arms"][name], self._plan.reward_range(name)
        return {
            "arm": name,
            "model": arm["model"],
            "condition": arm["condition"],
            "grader": self._plan.condition(name)["grader"]["kind"],
            "reward": {"min": low, "max": high},
            "training_seeds": training_seeds(self._protocol, name),
        }

    def _queues_in_order(self):
        return sorted(self._plan.queues, key=lambda name: self._protocol["queues"][name]["role"] != "confirmatory")

    def _failures(self):
        counted = [(key, count) for key, count in self._audit.tally.failures.items() if count]
        counted.sort(key=lambda item: _utf16_order(canonical_text(list(item[0]))))
        names = ("arm", "stage", "cause", "attribution")
        return [{**dict(zip(names, key)), "attempts": count} for key, count in counted]

    def _truncation(self):
        reasons = self._audit.tally.finish_reasons
        rows = []
        for arm in _in_utf16_order(reasons):
            known, truncated, unknown, looped = reasons[arm]
            if known:
                row = {"arm": arm, "known": known, "truncated": truncated, "unknown": unknown}
                if "loop_stop" in self._plan.condition(arm):
                    row["looped"] = looped
                rows.append(row)
        return rows

    # queues

    def results_of(self, queue):
        """The cells of a queue."""
        if queue not in self._results:
            self._results[queue] = QueueResults(self._plan, queue, self._audit.slots.values())
        return self._results[queue]

    def queue(self, name):
        results = self.results_of(name)
        everything = range(len(self._plan.tasks(name).ids))
        declared = [contrast for contrast in self._analysis["contrasts"] if contrast["queue"] == name]
        scores = [score["id"] for score in self._analysis["scores"] if score["queue"] == name]
        contrasts = [self.contrast(results, contrast, everything) for contrast in declared]
        return {
            "queue": name,
            "label": "exploratory" if self._demoted else results.declared["role"],
            "scores": self._section(results, scores[0], everything) if scores else None,
            "contrasts": contrasts,
            "tables": [self._table(results, table) for table in self._analysis.get("tables", []) if table["queue"] == name],
            "decisions": [item for contrast in declared for item in self._decisions(results, contrast, everything)],
        }

    def _label(self, role, queue):
        if self._demoted or "exploratory" in (role, self._protocol["queues"][queue]["role"]):
            return "exploratory"
        return "confirmatory" if role == "primary" else "secondary"

    def _section(self, results, name, tasks):
        seeds = evaluation_seeds(results.declared)
        parts = seeds if len(seeds) > 1 else []
        weights = [(arm, seed) for arm in results.declared["arms"] for seed in training_seeds(self._protocol, arm)]
        rows = {pair: results.row(*pair, tasks) for pair in weights}
        by_seed = {(pair, one): results.row(*pair, tasks, one) for one in parts for pair in weights}
        shown = []
        for pair, row in rows.items():
            scores = [by_seed[(pair, one)].score() for one in parts] if row.complete else []
            shown.append(self._row(pair, row, spread(scores)))
        return {
            "id": name,
            "estimand": _PROSE,
            "unit_of_replication": _PROSE,
            "tasks": len(tasks),
            "reps": results.declared["reps"],
            "rows": shown,
            "evaluations": [
                {**self._row(pair, row, None), "evaluation_seed": one} for (pair, one), row in by_seed.items()
            ],
            "arms": [
                self._arm_row(arm, [row for pair, row in rows.items() if pair[0] == arm])
                for arm in results.declared["arms"]
            ],
        }

    def _row(self, weights, row, evaluation_spread):
        saturation = row.saturation(self._analysis["interval"]["level"])
        if saturation is not None:
            saturation["wilson"]["low"] = nearly(saturation["wilson"]["low"])
            saturation["wilson"]["high"] = nearly(saturation["wilson"]["high"])
        return {
            "arm": weights[0],
            "training_seed": weights[1],
            **row.counts(),
            "sum": figure(Fraction(sum(cell.sum for cell in row.cells))),
            "bound": row.bound().to_json(),
            "complete": row.complete,
            "sampling_standard_error": row.standard_error(),
            "evaluation_spread": evaluation_spread,
            "saturation": saturation,
        }

    def _arm_row(self, arm, rows):
        complete = all(row.complete for row in rows)
        return {
            "arm": arm,
            "seeds": len(rows),
            "bound": mean_bound([row.bound() for row in rows]).to_json(),
            "complete": complete,
            "spread": spread([row.score() for row in rows]) if complete else None,
        }

    def _table(self, results, table):
        arms, seen, contrasts = results.declared["arms"], set(), []
        for contrast in self._analysis["contrasts"]:
            pair = (contrast["minuend"], contrast["subtrahend"])
            if pair[0] in arms and pair[1] in arms and pair not in seen:
                seen.add(pair)
                contrasts.append(contrast)
        label = self._label(table["role"], table["queue"])
        partitions = []
        for name in table["partitions"]:
            members_of_it = self._plan.task_sets[name].positions
            tasks = [at for at, task in enumerate(self._plan.tasks(table["queue"]).ids) if task in members_of_it]
            partitions.append(
                {
                    "partition": name,
                    "tasks": len(tasks),
                    "scores": self._section(results, name, tasks) if tasks else None,
                    "contrasts": [self.contrast(results, one, tasks, label) for one in contrasts] if tasks else [],
                }
            )
        return {"id": table["id"], "label": label, "partitions": partitions}

    # contrasts

    def _pair_rows(self, results, contrast, tasks):
        return [
            (
                results.row(contrast["minuend"], first, tasks),
                results.row(contrast["subtrahend"], second, tasks),
            )
            for first, second in results.pairs(contrast)
        ]

    def contrast_bound(self, results, contrast, tasks):
        """The bound of a contrast, or None without a pair."""
        bounds = [first.bound().minus(second.bound()) for first, second in self._pair_rows(results, contrast, tasks)]
        return mean_bound(bounds) if bounds else None

    def _decisions(self, results, contrast, tasks):
        bound = self.contrast_bound(results, contrast, tasks)
        rows = []
        for decision in self._analysis.get("decisions", []):
            if decision["contrast"] == contrast["id"]:
                status, conclusion = decide(decision, bound)
                rows.append(
                    {
                        "id": decision["id"],
                        "contrast": contrast["id"],
                        "label": self._label(contrast["role"], contrast["queue"]),
                        "condition": "%s %s" % (decision["comparator"], format_number(decision["threshold"])),
                        "status": status,
                        "conclusion": conclusion,
                    }
                )
        return rows

    def contrast(self, results, contrast, tasks, label=None):
        seeds, pairs = results.pairs(contrast), self._pair_rows(results, contrast, tasks)
        bound = self.contrast_bound(results, contrast, tasks)
        complete = bool(pairs) and all(row.complete for pair in pairs for row in pair)
        differences = None
        if complete:
            differences = [
                [one.mean() - other.mean() for one, other in zip(first.cells, second.cells)] for first, second in pairs
            ]
        return {
            "id": contrast["id"],
            "minuend": contrast["minuend"],
            "subtrahend": contrast["subtrahend"],
            "label": label or self._label(contrast["role"], contrast["queue"]),
            "pairing": self._pairing(contrast, seeds),
            "estimand": _PROSE,
            "unit_of_replication": _PROSE,
            "tasks": len(tasks),
            "missing": self._missing(results, contrast, seeds, tasks),
            "complete": complete,
            "bound": None if bound is None else bound.to_json(),
            "sign": self._sign(bound),
            "pairs": [
                {"minuend_seed": one, "subtrahend_seed": two, "bound": first.bound().minus(second.bound()).to_json()}
                for (one, two), (first, second) in zip(seeds, pairs)
            ],
            "estimate": figure(mean([mean(row) for row in differences])) if complete else None,
            "spread": spread([mean(row) for row in differences]) if complete else None,
            "interval": self._interval(differences) if complete else None,
            "statements": _PROSES,
        }

    def _sign(self, bound):
        if bound is None:
            return "not_identified"
        return "positive" if bound.lower > 0 else "negative" if bound.upper < 0 else "not_identified"

    def _pairing(self, contrast, seeds):
        sides = [training_seeds(self._protocol, contrast[side]) == [None] for side in ("minuend", "subtrahend")]
        if all(sides):
            return "no_seed"
        if len(seeds) < 2:
            return "one_seed" if seeds else "none"
        return "one_side_fixed" if any(sides) else "paired_seeds"

    def _missing(self, results, contrast, seeds, tasks):
        weights = {("minuend", one) for one, _ in seeds} | {("subtrahend", two) for _, two in seeds}
        counts = [results.row(contrast[side], seed, tasks).counts() for side, seed in weights]
        return {name: sum(count[name] for count in counts) for name in ("unresolved", "pending")}

    def _interval(self, differences):
        declared, pairs, tasks = self._analysis["interval"], len(differences), len(differences[0])
        resamples = declared["resamples"]
        if resamples * (pairs + tasks) > MAX_DRAWS or resamples * pairs * tasks > MAX_PRODUCTS:
            self._audit.outcome.skip("an interval of a report that would take too long")
            return anything
        counts = self._counts_of_draws(declared["seed"], resamples, pairs, tasks)
        found = resampled_statistics(differences, counts)
        resampled = population_variance(found)
        found.sort()
        total, of_pairs, of_tasks, together = exact_variances(differences)
        tail = (1 - declared["level"]) / 2
        return {
            "method": "task_bootstrap" if pairs == 1 else "two_way_bootstrap",
            "level": declared["level"],
            "lower": quantile(found, tail),
            "upper": quantile(found, 1 - tail),
            "resamples": resamples,
            "seed": declared["seed"],
            "generator": _PROSE,
            "index": _PROSE,
            "order": _PROSE,
            "quantile": _PROSE,
            "degenerate": "one_task" if tasks == 1 else "no_variation" if total == 0 else None,
            "variance": {
                "resampled": resampled,
                "exact": figure(total),
                "seeds": figure(of_pairs),
                "tasks": figure(of_tasks),
                "interaction": figure(together),
            },
        }

    def _counts_of_draws(self, seed, resamples, pairs, tasks):
        if (pairs, tasks) not in self._draws:
            self._draws[(pairs, tasks)] = list(draw_counts(seed, resamples, pairs, tasks))
        return self._draws[(pairs, tasks)]


def differences_of(expected, actual, place=""):
    """Where a value is not the expected one, as texts; a callable in the expected value is a check."""
    if callable(expected):
        problem = expected(actual)
        return [place + problem] if problem else []
    if type(expected) is dict and type(actual) is dict:
        found = ["%s/%s: only in one of them" % (place, name) for name in sorted(set(expected) ^ set(actual))]
        for name in expected:
            if name in actual:
                found += differences_of(expected[name], actual[name], "%s/%s" % (place, name))
        return found
    if type(expected) is list and type(actual) is list:
        if len(expected) != len(actual):
            return ["%s: %d items, expected %d" % (place, len(actual), len(expected))]
        pairs = enumerate(zip(expected, actual))
        return [line for at, (one, other) in pairs for line in differences_of(one, other, "%s/%d" % (place, at))]
    if type(expected) is float or type(actual) is float:
        same = type(actual) in (int, float) and type(expected) in (int, float) and expected == actual
    else:
        same = type(expected) is type(actual) and expected == actual
    return [] if same else ["%s: %s, expected %s" % (place, _shown(actual), _shown(expected))]


def _shown(value):
    if type(value) in (dict, list):
        return "an object" if type(value) is dict else "a list"
    return quote(value) if type(value) is str else json.dumps(value)


# ---------------------------------------------------------------------------------------------------------------
# Trusted keys (docs/formats/checkpoints.md)
# ---------------------------------------------------------------------------------------------------------------

def signature_verdicts(note, origin, keys):
    """For each signature of a note that one of the keys should have made, (the key, whether it verifies)."""
    match = _ORIGIN.fullmatch(origin)
    verdicts = []
    for key in keys:
        of_log = not key.cosigns and (key.name == origin or (match is not None and key.name == match.group(1)))
        if not of_log and not key.cosigns:
            continue
        name = origin if of_log else key.name
        for signer, key_id, signature in note.signatures:
            if signer == name and key_id == note_key_id(name, key.blob):
                verdicts.append((key, _signature_holds(key, note.text.encode("utf-8"), signature)))
    return verdicts


def _signature_holds(key, message, signature):
    if key.cosigns:
        time = int.from_bytes(signature[:8], "big")
        if time > MAX_COSIGNATURE_TIME:
            return False
        message, signature = b"cosignature/v1\ntime %d\n%s" % (time, message), signature[8:]
    return verify_ed25519(key.public_key, message, signature)


class Policy:
    """Whose cosignatures a reader asks for, from a file in the form of c2sp.org/tlog-policy."""

    def __init__(self, data):
        if len(data) > MAX_POLICY_SIZE or not data.endswith(b"\n"):
            raise Refusal("a policy ends with a line feed and has at most %d bytes" % MAX_POLICY_SIZE)
        if any((c < 32 and c not in (9, 10)) or c == 127 for c in data):
            raise Refusal("a control character")
        self.logs = []
        self.witnesses = {}
        self._groups = {}
        self._members = set()
        self._quorum = None
        for line in data[:-1].split(b"\n"):
            words = line.replace(b"\t", b" ").split(b" ")
            words = [word for word in words if word]
            if words and not words[0].startswith(b"#"):
                self._read(words[0], words[1:])
        if self._quorum is None:
            raise Refusal("a policy has a quorum line")

    def _read(self, kind, words):
        if kind == b"log" and len(words) in (1, 2):
            self._add_key(self.logs, words[0], False)
        elif kind == b"witness" and len(words) in (2, 3):
            self._require_new(words[0])
            keys = list(self.witnesses.values())
            self._add_key(keys, words[1], True)
            self.witnesses[words[0]] = keys[-1]
        elif kind == b"group" and len(words) > 2:
            self._require_new(words[0])
            self._groups[words[0]] = (self._threshold(words[1], len(words) - 2), self._take(words[2:]))
        elif kind == b"quorum" and len(words) == 1 and self._quorum is None:
            if words[0] != b"none" and not self._is_known(words[0]):
                raise Refusal("the quorum is not defined above")
            self._quorum = words[0]
        else:
            raise Refusal("the line %s" % quote(kind.decode("latin-1")))

    def _add_key(self, keys, encoded, cosigns):
        try:
            key = VerifierKey(encoded.decode("utf-8"))
        except UnicodeDecodeError:
            raise Refusal("a key that is not UTF-8") from None
        if key.cosigns != cosigns or any(other.public_key == key.public_key for other in keys):
            raise Refusal("a key of the wrong kind, or one that was given before")
        keys.append(key)

    def _is_known(self, name):
        return name in self.witnesses or name in self._groups

    def _require_new(self, name):
        if name == b"none" or self._is_known(name):
            raise Refusal("a name that is taken")

    def _threshold(self, word, size):
        if word in (b"all", b"any"):
            return size if word == b"all" else 1
        if not re.fullmatch(b"[1-9][0-9]{0,5}", word) or int(word) > size:
            raise Refusal("a threshold from 1 to the number of members")
        return int(word)

    def _take(self, names):
        for name in names:
            if not self._is_known(name) or name in self._members:
                raise Refusal("a member that is not defined above, or is one already")
            self._members.add(name)
        return names

    def is_met(self, signers):
        """Whether the quorum is among the keys that signed."""
        made = {key.blob + key.name.encode("utf-8") for key in signers}
        reached = {name for name, key in self.witnesses.items() if key.blob + key.name.encode("utf-8") in made}
        for name, (threshold, names) in self._groups.items():
            if len(reached.intersection(names)) >= threshold:
                reached.add(name)
        return self._quorum == b"none" or self._quorum in reached


# ---------------------------------------------------------------------------------------------------------------
# Attestations: DSSE envelopes (docs/formats/attestations.md)
# ---------------------------------------------------------------------------------------------------------------

MAX_ENVELOPE_SIZE = 65_536
PAYLOAD_TYPE = "application/vnd.in-toto+json"
MANIFEST_PREDICATE = "https://boundbook.dev/predicate/manifest/v1"
REPORT_PREDICATE = "https://boundbook.dev/predicate/report/v1"
_STATEMENT_HEAD = {
    "_type": one_of("https://in-toto.io/Statement/v1"),
    "subject": list_of(members({"name": text(1), "digest": members({"sha256": HEX64})}), 1, 1),
}
_STATEMENT_FORM = by_member(
    "predicateType",
    {
        MANIFEST_PREDICATE: members(
            {
                **_STATEMENT_HEAD,
                "predicateType": text(),
                "predicate": members(
                    {
                        "name": text(1),
                        "revision": integer(1),
                        "sequence": integer(1),
                        "execution_ready": boolean,
                        "parent": nullable(DIGEST),
                        "supersedes": nullable(DIGEST),
                        "slots": nullable(_PLAN_FORM),
                    }
                ),
            }
        ),
        REPORT_PREDICATE: members(
            {
                **_STATEMENT_HEAD,
                "predicateType": text(),
                "predicate": members(
                    {
                        "manifest": DIGEST,
                        "ledger": members({"id": HEX32, "size": integer(1), "root": DIGEST}),
                        "slots": members(
                            {"planned": COUNT, "settled": COUNT, "unresolved": COUNT, "pending": COUNT}
                        ),
                        "unblinded": boolean,
                    }
                ),
            }
        ),
    },
)
MAX_ENVELOPE_SIGNATURES = 100
MAX_JUDGED_ENVELOPES = 200


class Envelope:
    """A DSSE envelope around a statement: the statement, what was signed, and (key id, signature bytes)."""

    def __init__(self, data):
        envelope = parse_json(data)
        if type(envelope) is not dict or any(type(envelope.get(name)) is not str for name in ("payload", "payloadType")):
            raise Refusal("no envelope")
        if envelope["payloadType"] != PAYLOAD_TYPE:
            raise Refusal("a payload of another type")
        signatures = envelope.get("signatures")
        if type(signatures) is not list or not 1 <= len(signatures) <= MAX_ENVELOPE_SIGNATURES:
            raise Refusal("not from 1 to %d signatures" % MAX_ENVELOPE_SIGNATURES)
        payload = _decode_any_base64(envelope["payload"])
        self.statement = parse_canonical(payload)
        problem = _STATEMENT_FORM(self.statement)
        if problem:
            raise Refusal("the statement: %s" % problem.lstrip(": "))
        head = "DSSEv1 %d %s %d " % (len(PAYLOAD_TYPE), PAYLOAD_TYPE, len(payload))
        self.message = head.encode("ascii") + payload
        self.signatures = [self._signature(item) for item in signatures]
        self.subject = self.statement["subject"][0]["digest"]["sha256"]

    @staticmethod
    def _signature(item):
        """(key id, bytes); members that DSSE does not know are ignored."""
        if type(item) is not dict or type(item.get("sig")) is not str or type(item.get("keyid", "")) is not str:
            raise Refusal("a signature has a sig")
        return item.get("keyid", ""), _decode_any_base64(item["sig"])

    def signers(self, keys):
        """The keys that signed, and whether a signature that claims to be by one of the keys is by none."""
        keys, found, false_claim = [key for key in keys if not key.cosigns], [], False
        for key_id, signature in self.signatures:
            made = [key for key in keys if verify_ed25519(key.public_key, self.message, signature)]
            claimed = any(key_id == "%s+%s" % (key.name, note_key_id(key.name, key.blob).hex()) for key in keys)
            found += made
            false_claim = false_claim or (claimed and not made)
        return found, false_claim


def manifest_predicate(manifest):
    """What a statement about a manifest has to say."""
    names = ("name", "revision", "sequence", "execution_ready", "parent", "supersedes")
    return {**{name: manifest.value[name] for name in names}, "slots": manifest.value["plan"]}


def report_predicate(report):
    """What a statement about a report has to say; None when the report has not the form."""
    try:
        return {
            "manifest": report["manifest"]["digest"],
            "ledger": {
                "id": report["ledger"]["name"],
                "size": report["ledger"]["entries"],
                "root": "sha256:" + report["ledger"]["root"],
            },
            "slots": report["coverage"]["total"],
            "unblinded": report["visibility"] != "blinded",
        }
    except (KeyError, TypeError):
        return None


# ---------------------------------------------------------------------------------------------------------------
# Amendments: what a ledger carries, and what a new revision says was known (docs/formats/amendments.md)
# ---------------------------------------------------------------------------------------------------------------


def origin_of(manifest, manifests):
    """The first manifest of a revision, or None when one between is missing."""
    while manifest is not None and manifest.value["parent"] is not None:
        manifest = manifests.get(manifest.value["parent"])
    return manifest


class Lineage:
    """The manifests that a ledger's manifest rests on: of each revision the one in force, from the newest on."""

    def __init__(self, manifest, manifests):
        self._manifests = manifests
        self.in_force = []
        while manifest is not None and manifest not in self.in_force:
            self.in_force.append(manifest)
            manifest = manifests.get(manifest.value["supersedes"])

    def successor_of(self, digest):
        """The manifest in force that supersedes the one with this digest, or None."""
        for manifest in self.in_force:
            if manifest.value["supersedes"] == digest:
                return manifest
        return None

    def origin_of(self, manifest):
        return origin_of(manifest, self._manifests)


def check_exposure(manifest, superseded, ledger):
    """Whether a manifest says all that was known of its predecessor, whose ledger may be None; raises Refusal."""
    told, before = manifest.value["exposure"], superseded.value["exposure"]
    known = before or {"slots_run": 0, "settled": 0, "unblinded": False, "bounds": {}}
    run, settled, unblinded, bounds = (known[name] for name in ("slots_run", "settled", "unblinded", "bounds"))
    if ledger is not None:
        own = [slot for slot in ledger.slots.values() if slot.by != "carried"]
        run += len(own)
        settled += sum(1 for slot in own if slot.state == "settled")
        opened = ledger.unblinded_when_sealed
        if superseded.protocol["blinding"] == "none":
            opened = opened or any(slot.closed for slot in ledger.slots.values())
        if opened:
            unblinded, bounds = True, ReportBuilder(ledger).exposed_bounds()
    if told["slots_run"] < run or told["settled"] < settled or (unblinded and not told["unblinded"]):
        raise Refusal("%d slots had run, %d were settled" % (run, settled))
    if told["bounds"] != bounds:
        raise Refusal("other bounds were known")


class Succession:
    """Holds what a ledger carries against the ledger that it carries from."""

    def __init__(self, newer, older, lineage, outcome):
        self._newer = newer
        self._older = older
        self._lineage = lineage
        self._outcome = outcome
        self._equal = {}
        self._unsure = False

    def check(self):
        self._check_seal()
        if self._newer.plan is None or self._older.plan is None:
            return
        carried = {raw for raw, slot in self._newer.slots.items() if slot.by == "carried"}
        again = dropped = 0
        for raw, slot in self._older.slots.items():
            key = self._older.key_of(slot)
            if not self._newer.plan.has(key):
                dropped += self._is_closed(slot)
            elif not self._is_closed(slot):
                self._find("CARRY_UNFOUNDED", "%s was started and not closed" % raw.hex())
            elif not self._same_conditions(slot, key):
                again += 1
            elif raw not in carried:
                self._find("CARRY_OMITTED", "%s is not carried" % raw.hex())
            else:
                carried.discard(raw)
                self._compare(raw, slot)
        for raw in carried:
            self._find("CARRY_UNFOUNDED", "%s is carried without its reason" % raw.hex())
        told = self._newer.opened["carries"]
        if (told["again"], told["dropped"]) != (again, dropped) and not self._unsure:
            self._find("CARRIED_DIFFERS", "%d run again and %d dropped" % (again, dropped))
        self._check_notes(told["size"])
        self._check_forgotten()

    def _find(self, code, message):
        self._outcome.find(code, self._newer.place, message)

    def _check_seal(self):
        carries, sealed = self._newer.opened["carries"], self._older.sealed_by
        successor = self._lineage.successor_of(self._older.manifest.digest)
        if successor is None:
            self._find("PREDECESSOR_DIFFERS", "it carries from a ledger of no plan that it supersedes")
            return
        if sealed is None or sealed["seq"] >= carries["size"]:
            self._find("PREDECESSOR_DIFFERS", "the state that is carried does not hold its seal")
            return
        origin, value = self._lineage.origin_of(successor), successor.value
        told = (sealed["successor"], sealed["revision"], sealed["reason"])
        if origin is not None and told != (origin.digest, value["revision"], value["reason"]):
            self._outcome.find("AMENDMENT_DIFFERS", self._older.place, "its seal names another successor")

    def _is_closed(self, slot):
        required = self._older.protocol["attempts"].get("adjudication") == "required"
        return slot.closed and not (required and awaits_verdict(slot))

    def _compare(self, raw, slot):
        """Holds a carried slot against the one that was closed."""
        taken = self._newer.slots[raw]
        same = all(getattr(taken, name) == getattr(slot, name) for name in ("state", "attempts", "value", "report", "reason"))
        if slot.state == "settled":
            same = same and taken.attempt == slot.attempt
        if not same or taken.carried_from != slot.closed_by:
            self._find("CARRIED_DIFFERS", "%s is carried otherwise than it was closed" % raw.hex())

    def _same_conditions(self, slot, key):
        """Whether nothing that a closed slot rests on has changed."""
        pair = (key["arm"], key["training_seed"])
        if pair not in self._equal:
            self._equal[pair] = self._conditions(self._older, pair) == self._conditions(self._newer, pair)
        if not self._equal[pair]:
            return False
        undetermined = slot.state == "unresolved" and slot.reason == "undetermined" and slot.by in ("rule", "carried")
        if undetermined and self._newer.protocol["attempts"].get("adjudication") == "required":
            old_required = self._older.protocol["attempts"].get("adjudication") == "required"
            if slot.by == "rule" or not old_required:
                return False
        return self._same_task(key)

    def _conditions(self, audit, pair):
        """Canonical text of everything but the task that a slot of an arm and a training seed rests on."""
        arm, seed = pair
        protocol, bindings = audit.protocol, audit.manifest.bindings
        declared = protocol["arms"][arm]
        model, condition = protocol["models"][declared["model"]], declared["condition"]
        label = declared["model"] if seed is None else "%s@%d" % (declared["model"], seed)
        names = {"weights/" + label, "tokenizer/" + label, "report-schema/" + condition}
        bound = {name: item["digest"] for name, item in bindings.items() if name in names or name.startswith("runner/")}
        attempts = {name: protocol["attempts"][name] for name in ("replacements", "regrades", "rules")}
        own = {name: value for name, value in model.items() if name != "training_seeds"}
        parts = [declared, own, protocol["conditions"][condition], protocol["sampling"], protocol["runner"], attempts, bound]
        return canonical_text(parts)

    def _same_task(self, key):
        lines = [audit.plan.tasks(key["queue"]).line(key["task"]) for audit in (self._older, self._newer)]
        if None in lines:
            self._unsure = True
            self._outcome.skip("whether a carried task in a redacted file is the same")
            return bytes.fromhex(slot_id(slot_tuple(key))) in self._newer.slots
        return lines[0] == lines[1] or to_canonical(lines[0]) == to_canonical(lines[1])

    def _check_notes(self, size):
        """Deviations noted in the older ledger about slots of the newer plan are noted again."""

        def label(note):
            return canonical_text([note["text"], note["selector"]])

        told = {label(note) for note in self._newer.noted}
        for note in self._older.noted:
            if note["entry"] >= size or label(note) in told:
                continue
            selected = self._newer.plan.select(note["selector"])
            if selected is not None and selected["count"] > 0:
                self._find("DEVIATION_OMITTED", "the deviation of entry %d is not noted again" % note["entry"])

    def _check_forgotten(self):
        """Slots that only a ledger further back knows may not be planned again."""
        further = self._older.predecessor
        while further is not None and further.plan is not None:
            for raw, slot in further.slots.items():
                if raw not in self._older.slots and self._newer.plan.has(further.key_of(slot)):
                    self._find("CARRY_UNFOUNDED", "%s was run before, and is planned anew" % raw.hex())
            further = further.predecessor


def to_canonical(line):
    """Canonical JSON of a task's line, in which a lone surrogate stands for itself."""
    return canonical_text(parse_json(line))


# ---------------------------------------------------------------------------------------------------------------
# Bundles (docs/formats/bundle.md)
# ---------------------------------------------------------------------------------------------------------------

_INDEX_FORM = members(
    {
        "format": one_of("boundbook/bundle/1"),
        "manifest": DIGEST,
        "ledger": members({"id": HEX32, "leaf": HEX64, "root": HEX64, "size": integer(1)}),
        "redacted": COUNT,
        "files": map_of(members({"size": COUNT, "digest": DIGEST})),
    }
)
_TASK_IDS_FORM = map_of(list_of(text()))


class LedgerFiles:
    """The files of one ledger in a bundle, below `folder`."""

    def __init__(self, source, folder):
        self.source = source
        self.folder = folder

    def path(self, name):
        return self.folder + name

    def has(self, name):
        return self.path(name) in self.source.sizes

    def lines(self):
        """The bodies of the entries; refuses a file that is not lines of entries."""
        with self.source.open(self.path("entries.jsonl")) as file:
            while True:
                line = file.readline(MAX_ENTRY_SIZE + 2)
                if not line:
                    return
                if not line.endswith(b"\n") or line == b"\n":
                    raise Refusal("a line that is empty, too long or without its line feed")
                yield line[:-1]

    def first_entry(self):
        """The first entry, or None when it cannot be read."""
        try:
            entry = parse_json(next(self.lines(), b""))
        except Refusal:
            return None
        return entry if ENTRY_FORM(entry) is None and entry["type"] == "ledger.opened" else None

    def task_ids(self):
        if not self.has("task-ids.json"):
            return {}
        value = parse_canonical(read_file(self.source, self.path("task-ids.json"), MAX_OBJECT_SIZE))
        problem = _TASK_IDS_FORM(value)
        if problem:
            raise Refusal(problem.lstrip(": "))
        return value


class Reports:
    """The reports of a bundle, each about a number of entries of its ledger."""

    def __init__(self, source, outcome):
        self._outcome = outcome
        self.by_path = {}
        self._waiting = {}
        for path in sorted(source.sizes):
            if path.startswith("report/") and path.endswith(".json"):
                self._read(source, path)

    def _read(self, source, path):
        try:
            report = parse_json(read_file(source, path, MAX_REPORT_SIZE))
        except Refusal as refusal:
            self._outcome.find("REPORT_FORM", path, str(refusal))
            return
        ledger = report.get("ledger") if type(report) is dict else None
        entries = ledger.get("entries") if type(ledger) is dict else None
        if integer(1)(entries) or report.get("schema") != "boundbook/report/1":
            self._outcome.find("REPORT_FORM", path, "no report")
            return
        self.by_path[path] = report
        self._waiting.setdefault(entries, []).append(path)

    def check(self, audit):
        """Compares the reports about as many entries as the audit has read."""
        paths = self._waiting.pop(audit.size, [])
        if not paths or audit.plan is None or audit.opened is None:
            return
        try:
            expected = ReportBuilder(audit).build()
        except Refusal as refusal:
            self._outcome.find("REPORT_NUMBER", paths[0], str(refusal))
            return
        for path in paths:
            for line in differences_of(expected, self.by_path[path]):
                shown = line if audit.unblinded is not None else line.partition(":")[0]
                self._outcome.find("REPORT_NUMBER", path, shown)

    def finish(self):
        """Reports about more entries than there are."""
        for paths in self._waiting.values():
            for path in paths:
                self._outcome.find("LEDGER_SHORTENED", path, "it is about more entries than the ledger has")


class BundleAudit:
    """Verifies a whole bundle."""

    def __init__(self, source, keys, policy=None):
        self.source = source
        self.keys = keys
        self.policy = policy
        self._is_quorum_met = False
        self._expected_statements = None
        self._judged_envelopes = 0
        self.outcome = Outcome()
        self.index = None
        self.identity = None
        self.manifests = {}
        self.ledger = None
        self.verified_notes = 0
        self._reports = None
        self._redacted = 0

    def run(self):
        for path, message in self.source.faults:
            self._find("BUNDLE_FILE", path, message)
        if not self._read_index():
            return
        self._check_files()
        self._read_manifests()
        self._check_lineage()
        self._reports = Reports(self.source, self.outcome)
        self._audit_ledgers()
        self._reports.finish()
        self._check_notes()
        self._check_attestations()
        self._check_index()

    def _find(self, code, path, message):
        self.outcome.find(code, path, message)

    # index and manifests

    def _read_index(self):
        """Whether there is an index to go on with."""
        path = "bundle.json"
        for needed in (path, "ledger/entries.jsonl"):
            if needed not in self.source.sizes:
                self._find("BUNDLE_INVALID", needed, "not there")
                return False
        try:
            data = read_file(self.source, path, MAX_INDEX_SIZE)
            self.identity = digest_of(data)
            index = parse_canonical(data)
        except Refusal as refusal:
            self._find("BUNDLE_INDEX", path, str(refusal))
            return False
        problem = _INDEX_FORM(index)
        if problem:
            self._find("BUNDLE_INDEX", path, problem.lstrip(": "))
            return False
        self.index = index
        return True

    def _check_files(self):
        listed, present = self.index["files"], set(self.source.sizes) - {"bundle.json"}
        for path in sorted(present ^ set(listed)):
            self._find("BUNDLE_INDEX", path, "not listed" if path in present else "listed and not there")
        if _repeats([path.lower() for path in self.source.sizes]):
            self._find("BUNDLE_FILE", "", "two paths differ in case only")
        for path in sorted(present & set(listed)):
            size, digest = hash_file(self.source, path)
            if (size, digest) != (listed[path]["size"], listed[path]["digest"]):
                self._find("BUNDLE_INDEX", path, "not the size and digest of the index")

    def _read_manifests(self):
        for path in sorted(self.source.sizes):
            folder, _, name = path.partition("/")
            if folder != "manifests":
                continue
            try:
                manifest = parse_manifest(read_file(self.source, path, MAX_MANIFEST_SIZE), name)
            except Refusal as refusal:
                self._find("MANIFEST_ALTERED", path, str(refusal))
                continue
            if not MANIFEST_NAME.fullmatch(name):
                self._find("MANIFEST_SURPLUS", path, "not the name of a manifest")
            self.manifests[manifest.digest] = manifest

    def _check_lineage(self):
        reached, waiting = set(), [self.index["manifest"]]
        while waiting:
            digest = waiting.pop()
            if digest in reached:
                continue
            reached.add(digest)
            manifest = self.manifests.get(digest)
            if manifest is None:
                self._find("MANIFEST_MISSING", "manifests", digest)
                continue
            for member in ("parent", "supersedes"):
                named = manifest.value[member]
                if named is not None:
                    waiting.append(named)
                    self._check_descent(manifest, member, self.manifests.get(named))
        for digest in set(self.manifests) - reached:
            self._find("MANIFEST_SURPLUS", "manifests", digest)

    def _check_descent(self, manifest, member, other):
        if other is None:
            return
        try:
            check_descent(manifest, member, other)
        except Refusal as refusal:
            self._find("LINEAGE_BROKEN", "manifests", "%s: %s" % (manifest.digest, refusal))

    # ledgers

    def _audit_ledgers(self):
        """Audits the ledger and those that it carries from, the oldest first."""
        chain, carries, manifest = [], None, self.index["manifest"]
        folders = {"/".join(path.split("/")[:2]) + "/" for path in self.source.sizes if path.startswith("predecessors/")}
        folder = "ledger/"
        while folder is not None:
            chain.append((folder, manifest, carries))
            folders.discard(folder)
            files = LedgerFiles(self.source, folder)
            entry = files.first_entry() if files.has("entries.jsonl") else None
            carries = entry["carries"] if entry is not None else None
            folder = "predecessors/%s/" % carries["ledger"] if carries is not None else None
            manifest = carries["manifest"] if carries is not None else None
            if folder is not None and folder not in folders:
                self._find("PREDECESSOR_DIFFERS", folder, "the ledger that is carried from is not there")
                break
        for surplus in sorted(folders):
            self._find("PREDECESSOR_DIFFERS", surplus, "no ledger carries from this one")
        lineage = Lineage(self.manifests.get(self.index["manifest"]), self.manifests)
        audits = []
        for folder, digest, carries in reversed(chain):
            audit = self._audit_ledger(folder, digest, carries, audits[-1] if audits else None)
            if audit is not None and audit.predecessor is not None and audit.opened is not None:
                Succession(audit, audit.predecessor, lineage, self.outcome).check()
            audits.append(audit)
        self.ledger = audits[-1]
        self._check_exposures(lineage, [audit for audit in audits if audit is not None])

    def _check_exposures(self, lineage, audits):
        by_manifest = {audit.manifest.digest: audit for audit in audits}
        for manifest in lineage.in_force:
            superseded = self.manifests.get(manifest.value["supersedes"])
            ledger = by_manifest.get(manifest.value["supersedes"])
            if superseded is None or (ledger is not None and ledger.plan is None):
                continue
            try:
                check_exposure(manifest, superseded, ledger)
            except Refusal as refusal:
                self._find("EXPOSURE_UNDERSTATED", "manifests", "%s: %s" % (manifest.digest, refusal))

    def _audit_ledger(self, folder, digest, carries, predecessor):
        """Audits one ledger; carries is what the ledger after it says of it. Gives the audit, or None."""
        files, manifest = LedgerFiles(self.source, folder), self.manifests.get(digest)
        missing = [name for name in ("entries.jsonl", "objects.pack") if not files.has(name)]
        for name in missing:
            self._find("BUNDLE_FORM", files.path(name), "not there")
        if missing or manifest is None:
            return None
        pack = Pack(self.source, files.path("objects.pack"))
        pack.load()
        for code, message in pack.faults:
            self._find(code, files.path("objects.pack"), message)
        self._redacted += pack.redacted
        audit = LedgerAudit(files.path("entries.jsonl"), manifest, pack, self._task_ids(files, manifest, pack), self.outcome)
        audit.manifests = self.manifests
        audit.predecessor = predecessor
        audit.expect_schemas()
        self._feed(audit, files, carries)
        for orphan in pack.unmentioned():
            self._find("OBJECT_ORPHAN", files.path("objects.pack"), "no entry names %s" % orphan)
        return audit

    def _task_ids(self, files, manifest, pack):
        try:
            ids = files.task_ids()
        except Refusal as refusal:
            self._find("BUNDLE_FORM", files.path("task-ids.json"), str(refusal))
            return {}
        redacted = {
            name[6:]
            for name, binding in manifest.bindings.items()
            if name.startswith("tasks/") and pack.is_redacted(binding["digest"])
        }
        if redacted != set(ids):
            self._find("BUNDLE_FORM", files.path("task-ids.json"), "not the ids of exactly the redacted task files")
        return ids

    def _feed(self, audit, files, carries):
        is_main, at_size = files.folder == "ledger/", None
        copy = LedgerCopy(self.source, files.path("ledger.sqlite")) if is_main else None
        try:
            for body in files.lines():
                audit.feed(body)
                if is_main:
                    copy.compare(audit, body)
                    self._reports.check(audit)
                elif audit.size == carries["size"]:
                    at_size = audit.tree.root().hex()
        except Refusal as refusal:
            self._find("BUNDLE_FORM", files.path("entries.jsonl"), str(refusal))
        if audit.size == 0:
            self._find("LEDGER_DAMAGED", files.path("entries.jsonl"), "no entry")
        if is_main:
            for message in copy.close():
                self._find("BUNDLE_COPY", copy.path, message)
        elif audit.opened is None or (at_size, audit.opened["ledger"]) != (carries["root"], carries["ledger"]):
            self._find("PREDECESSOR_DIFFERS", files.path("entries.jsonl"), "not the ledger that was carried from")

    # notes and attestations

    def _check_notes(self):
        recorded = {} if self.ledger is None else self.ledger.checkpoints
        for size, note in recorded.items():
            self._check_signatures("ledger/entries.jsonl, entry %d" % size, note)
        for path in sorted(self.source.sizes):
            folder, _, name = path.partition("/")
            if folder == "checkpoints":
                self._check_note_file(path, int(name.split(".")[0]), recorded)
        if self.policy is not None and not self._is_quorum_met:
            self._find("QUORUM_UNMET", "checkpoints", "no signed checkpoint has the cosignatures that the policy asks for")

    def _check_note_file(self, path, size, recorded):
        try:
            note = parse_note(read_file(self.source, path, MAX_NOTE_SIZE))
            if size in recorded and note.text == recorded[size].text:
                self._check_signatures(path, note)
                return
            checkpoint = parse_checkpoint(note.text)
            if checkpoint.size != size or not self._is_lost(checkpoint):
                raise Refusal("not the note of the entry at that position")
            self.outcome.skip("a checkpoint of entries that were lost when an older copy was put back")
        except Refusal as refusal:
            self._find("CHECKPOINT_DIFFERS", path, str(refusal))

    def _is_lost(self, checkpoint):
        """Whether it is of an earlier incarnation and has more entries than that left to the next one."""
        match = _ORIGIN.fullmatch(checkpoint.origin)
        if self.ledger is None or self.ledger.opened is None or match is None:
            return False
        if match.group(2) != self.ledger.opened["ledger"]:
            return False
        later = [seq for seq, number in self.ledger.openings if number > int(match.group(3))]
        return bool(later) and checkpoint.size > later[0]

    def _check_signatures(self, place, note):
        trusted = self.keys + ([] if self.policy is None else self.policy.logs + list(self.policy.witnesses.values()))
        verdicts = signature_verdicts(note, note.text.partition("\n")[0], trusted)
        if not all(holds for _, holds in verdicts):
            self._find("CHECKPOINT_SIGNATURE", place, "a signature by a given key does not verify")
        elif any(not key.cosigns for key, _ in verdicts):
            self.verified_notes += 1
            if self.policy is not None and self.policy.is_met([key for key, _ in verdicts]):
                self._is_quorum_met = True
        else:
            self.outcome.skip("a signed checkpoint: no key that was given made it")

    def _check_attestations(self):
        for path in sorted(self.source.sizes):
            if path.startswith("attestations/") and not path.endswith(".dsse.json"):
                self.outcome.skip("a time stamp")
            elif path.startswith("attestations/"):
                try:
                    envelope = Envelope(read_file(self.source, path, MAX_ENVELOPE_SIZE))
                    if not envelope.subject.startswith(path.split("/")[1].split(".")[0]):
                        raise Refusal("its name is that of another subject")
                    self._check_statement(path, envelope)
                except Refusal as refusal:
                    self._find("ATTESTATION_INVALID", path, str(refusal))

    def _check_statement(self, path, envelope):
        """An envelope over a manifest or a report of the bundle."""
        if self._expected_statements is None:
            self._expected_statements = self._statements()
        expected = self._expected_statements.get(envelope.subject)
        if expected is None:
            return
        self._judged_envelopes += 1
        if self._judged_envelopes > MAX_JUDGED_ENVELOPES:
            self.outcome.skip("a signed statement beyond the first %d" % MAX_JUDGED_ENVELOPES)
            return
        signers, false_claim = envelope.signers(self.keys)
        if false_claim:
            self._find("SIGNATURE_FALSE", path, "a signature that claims a given key is by none")
        if not signers:
            self.outcome.skip("a signed statement: no key that was given made a signature")
        elif (envelope.statement["predicateType"], envelope.statement["predicate"]) != expected:
            self._find("STATEMENT_DIFFERS", path, "it says something else than the file")

    def _statements(self):
        """By digest of a file, the predicate type and predicate that a statement about it has."""
        found = {
            digest[7:]: (MANIFEST_PREDICATE, manifest_predicate(manifest)) for digest, manifest in self.manifests.items()
        }
        for path, report in self._reports.by_path.items():
            _, digest = hash_file(self.source, path)
            found[digest[7:]] = (REPORT_PREDICATE, report_predicate(report))
        return found

    # the end

    def _check_index(self):
        """What the index repeats of the other files."""
        if self._redacted != self.index["redacted"]:
            self._find("BUNDLE_INDEX", "bundle.json", "%d records are redacted" % self._redacted)
        audit = self.ledger
        if audit is None or audit.opened is None or audit.leaf is None:
            return
        head = {
            "id": audit.opened["ledger"],
            "leaf": audit.leaf.hex(),
            "root": audit.tree.root().hex(),
            "size": audit.size,
        }
        if head != self.index["ledger"]:
            self._find("BUNDLE_INDEX", "bundle.json", "/ledger is not the head of the ledger")


# docs/formats/ledger.md, "Ledger file"
_LEDGER_SCHEMA = {
    "entry": """CREATE TABLE entry (
  seq INTEGER PRIMARY KEY CHECK (seq >= 0),
  prev BLOB CHECK (prev IS NULL OR length(prev) = 32),
  leaf BLOB NOT NULL CHECK (length(leaf) = 32),
  body BLOB NOT NULL CHECK (length(body) <= 60000)
) STRICT""",
    "entry_insert": """CREATE TRIGGER entry_insert BEFORE INSERT ON entry
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq) + 1, 0) FROM entry)
  OR NEW.prev IS NOT (SELECT leaf FROM entry ORDER BY seq DESC LIMIT 1)
BEGIN SELECT RAISE(ABORT, 'the ledger takes the next entry only'); END""",
    "entry_update": """CREATE TRIGGER entry_update BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry is never changed'); END""",
    "entry_delete": """CREATE TRIGGER entry_delete BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry is never removed'); END""",
    "object": """CREATE TABLE object (
  digest BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
  bytes BLOB NOT NULL CHECK (length(bytes) <= 16384)
) STRICT""",
    "object_insert": """CREATE TRIGGER object_insert BEFORE INSERT ON object
WHEN EXISTS (SELECT 1 FROM object WHERE digest = NEW.digest)
  OR EXISTS (SELECT 1 FROM object WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'an object is never replaced'); END""",
    "object_update": """CREATE TRIGGER object_update BEFORE UPDATE ON object
BEGIN SELECT RAISE(ABORT, 'an object is never changed'); END""",
    "object_delete": """CREATE TRIGGER object_delete BEFORE DELETE ON object
BEGIN SELECT RAISE(ABORT, 'an object is never removed'); END""",
}


class LedgerCopy:
    """ledger/ledger.sqlite, held against the entries row by row."""

    _CHUNK = 2**20

    def __init__(self, source, path):
        self.path = path
        self._problem = None
        self._connection = self._rows = self._folder = self._leaf = None
        if path not in source.sizes:
            self._problem = "not there"
            return
        try:
            self._open(self._on_disk(source))
        except (sqlite3.Error, Refusal) as error:
            self._problem = "no ledger file: %s" % error

    def _on_disk(self, source):
        """Path of a copy of the file, with nothing beside it that SQLite could take for a journal."""
        self._folder = tempfile.TemporaryDirectory(prefix="boundbook-verify-")
        target = os.path.join(self._folder.name, "ledger.sqlite")
        with source.open(self.path) as given, open(target, "wb") as copy:
            head = given.read(100)
            if head[:16] != b"SQLite format 3\0" or head[18:20] != b"\x01\x01":
                raise Refusal("not a SQLite file, or one in WAL mode")
            copy.write(head)
            for chunk in iter(lambda: given.read(self._CHUNK), b""):
                copy.write(chunk)
        return target

    def _open(self, path):
        self._connection = sqlite3.connect("file:%s?mode=ro&immutable=1" % path, uri=True)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON", "mmap_size = 0"):
            self._connection.execute("PRAGMA " + pragma)
        application, version = (
            self._connection.execute("PRAGMA " + name).fetchone()[0] for name in ("application_id", "user_version")
        )
        if (application, version) != (0x42424F4B, 1):
            raise Refusal("of another program or version")
        found = self._connection.execute(
            "SELECT name, sql FROM sqlite_master"
            " WHERE NOT (type = 'index' AND name = 'sqlite_autoindex_object_1' AND sql IS NULL) LIMIT 100"
        ).fetchall()
        if sorted(found, key=repr) != sorted(_LEDGER_SCHEMA.items(), key=repr):
            raise Refusal("with other tables or triggers than a ledger")
        if self._connection.execute("SELECT 1 FROM object LIMIT 1").fetchone() is not None:
            raise Refusal("with objects")
        self._rows = self._connection.execute("SELECT seq, prev, leaf, body FROM entry ORDER BY seq")

    def compare(self, audit, body):
        """Holds the next row against the entry that the audit has just taken."""
        if self._problem is not None:
            return
        previous, self._leaf = self._leaf, audit.leaf
        try:
            row = self._rows.fetchone()
        except sqlite3.Error as error:
            self._problem = "no ledger file: %s" % error
            return
        if row != (audit.size - 1, previous, audit.leaf, body):
            self._problem = "row %d is not the entry" % (audit.size - 1)

    def close(self):
        """What is wrong with the file, as a list of texts."""
        try:
            if self._problem is None and self._rows.fetchone() is not None:
                self._problem = "more rows than entries"
        except sqlite3.Error as error:
            self._problem = "no ledger file: %s" % error
        if self._connection is not None:
            self._connection.close()
        if self._folder is not None:
            self._folder.cleanup()
        return [] if self._problem is None else [self._problem]


# ---------------------------------------------------------------------------------------------------------------
# Command line
# ---------------------------------------------------------------------------------------------------------------

NEVER_CHECKED = (
    "whether the owner rewrote the whole ledger: only a head or checkpoint that somebody else kept shows that",
    "clocks and hosts, what a service did with what it was sent, whether reference answers are right",
    "how long stages, services and sessions took: costs rest on what the runner measured",
    "time stamps (RFC 3161) and X.509 chains",
    "JSON Schemas of reports, forms of a report other than report.json, and its prose and costs",
)
USAGE = "usage: boundbook_verify.py BUNDLE [--key VKEY]... [--policy FILE] [--json]"


def verdict_document(audit):
    """Everything that is said about a bundle, as one value."""
    ledger, index = audit.ledger, audit.index
    outcome = audit.outcome
    document = {
        "verdict": "findings" if outcome.count else "clean",
        "bundle": audit.identity,
        "manifest": index["manifest"] if index else None,
        "head": None,
        "plan": None,
        "coverage": None,
        "visibility": None,
        "bounds": None,
        "verified_checkpoints": audit.verified_notes,
        "findings": outcome.findings,
        "finding_count": outcome.count,
        "not_checked": outcome.unchecked() + list(NEVER_CHECKED),
    }
    if ledger is not None and ledger.opened is not None and ledger.leaf is not None:
        document["head"] = {
            "ledger": ledger.opened["ledger"],
            "size": ledger.size,
            "leaf": ledger.leaf.hex(),
            "root": ledger.tree.root().hex(),
        }
        if ledger.plan is not None:
            builder = ReportBuilder(ledger)
            document["plan"] = ledger.manifest.value["plan"]
            document["coverage"] = builder.coverage()["queues"]
            document["visibility"] = builder.visibility()
            if ledger.unblinded is not None:
                document["bounds"] = builder.bounds()
    return document


def print_text(document, out):
    """The same document for people."""

    def line(name, value):
        print("%-10s %s" % (name, value), file=out)

    line("verdict", document["verdict"])
    line("bundle", document["bundle"])
    line("manifest", document["manifest"])
    if document["head"]:
        head = document["head"]
        line("head", "size %d, leaf %s, root %s, ledger %s" % (head["size"], head["leaf"], head["root"], head["ledger"]))
    if document["plan"]:
        line("plan", "%d slots, %s" % (document["plan"]["count"], document["plan"]["digest"]))
        for queue in document["coverage"]:
            counts = "%(settled)d of %(planned)d settled, %(unresolved)d unresolved, %(pending)d pending" % queue
            line("coverage", "%s (%s): %s" % (printable(queue["queue"]), queue["role"], counts))
        line("outcomes", document["visibility"])
    for bound in document["bounds"] or []:
        line("bound", "%s: [%s, %s]" % (printable(bound["of"]), bound["lower"], bound["upper"]))
    line("notes", "%d signed checkpoints verified" % document["verified_checkpoints"])
    for finding in document["findings"]:
        line("finding", "%s at %s: %s" % (finding["code"], printable(finding["place"]), printable(finding["message"])))
    if document["finding_count"] > len(document["findings"]):
        line("finding", "and %d more" % (document["finding_count"] - len(document["findings"])))
    for item in document["not_checked"]:
        line("unchecked", printable(item))


def printable(value):
    """A hostile text without control characters."""
    return "".join(c if c.isprintable() else "\\u%04x" % ord(c) for c in value)


def parse_arguments(arguments):
    """(path, keys, policy or None, json); raises ValueError on wrong usage."""
    paths, keys, policy, as_json = [], [], None, False
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name in ("--key", "--policy"):
            value = value if equals else rest.pop(0) if rest else ""
            try:
                if name == "--key":
                    keys.append(VerifierKey(value))
                else:
                    policy = read_policy(value)
            except Refusal as refusal:
                raise ValueError("%s: %s" % (name, refusal)) from None
        elif name == "--json" and not equals:
            as_json = True
        elif name.startswith("-"):
            raise ValueError("unknown option %s" % name)
        else:
            paths.append(name + equals + value)
    if len(paths) != 1:
        raise ValueError(USAGE)
    return paths[0], keys, policy, as_json


def read_policy(path):
    try:
        with open(path, "rb") as file:
            return Policy(file.read(MAX_POLICY_SIZE + 1))
    except OSError as error:
        raise Refusal(str(error)) from None


def main(arguments, out=None):
    """Verifies a bundle, prints what was found, and gives the exit status."""
    out = out or sys.stdout
    if arguments in (["--help"], ["-h"]):
        print(__doc__, file=out)
        return 0
    try:
        path, keys, policy, as_json = parse_arguments(arguments)
        audit = BundleAudit(open_bundle(path), keys, policy)
    except (ValueError, NoBundle) as error:
        print("boundbook_verify: %s" % error, file=sys.stderr)
        return 2
    audit.run()
    document = verdict_document(audit)
    if as_json:
        print(json.dumps(document, ensure_ascii=True, indent=2), file=out)
    else:
        print_text(document, out)
    return 4 if document["finding_count"] else 0


if __name__ == "__main__":
    try:
        sys.stdout.reconfigure(errors="backslashreplace")
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (Exception, KeyboardInterrupt) as error:  # hostile input must not show a traceback
        print("boundbook_verify: internal fault: %s: %s" % (type(error).__name__, printable(str(error))), file=sys.stderr)
        sys.exit(1)
