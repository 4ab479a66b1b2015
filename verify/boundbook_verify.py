#!/usr/bin/env python3
"""A second verifier of Boundbook bundles.

It was written from docs/formats.md alone and shares no code with Boundbook: what both find is found twice.
One file, standard library, Python 3.9 or later.

    python3 boundbook_verify.py BUNDLE [--key VKEY]... [--json]

BUNDLE is a folder or a tar of it. Exit status: 0 nothing found, 4 findings, 2 wrong usage or no bundle,
1 a fault of this program.
"""

import base64
import binascii
import hashlib
import json
import os
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
# Strict JSON
# ---------------------------------------------------------------------------------------------------------------

MAX_DEPTH = 64
MAX_SAFE_INTEGER = 2**53 - 1
MAX_NUMBER_LENGTH = 400


def _reject_duplicates(pairs):
    value = dict(pairs)
    if len(value) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise Refusal("the key %s stands twice" % _quote(key))
            seen.add(key)
    return value


def _parse_integer(text):
    if len(text) > 17 or not text.isascii():
        raise Refusal("the integer %s is not exact in a double" % _quote(text))
    value = int(text)
    if abs(value) > MAX_SAFE_INTEGER:
        raise Refusal("the integer %s is not exact in a double" % _quote(text))
    return value


def _parse_fraction(text):
    if len(text) > MAX_NUMBER_LENGTH or not text.isascii():
        raise Refusal("the number %s is too long" % _quote(text))
    value = float(text)
    if value - value != 0:
        raise Refusal("the number %s is outside the range of doubles" % _quote(text))
    return value


def _reject_constant(text):
    raise Refusal("%s is no JSON" % text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_reject_duplicates,
    parse_int=_parse_integer,
    parse_float=_parse_fraction,
    parse_constant=_reject_constant,
)


def _quote(text, limit=80):
    """A short, printable form of a hostile text."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return json.dumps(shown, ensure_ascii=True)


def _check_depth_and_strings(value):
    """Refuses nesting beyond MAX_DEPTH and lone surrogates, without recursion."""
    level = [value]
    depth = 0
    while level:
        below = []
        nested = False
        for item in level:
            if isinstance(item, str):
                _check_surrogates(item)
            elif isinstance(item, dict):
                nested = True
                for key in item:
                    _check_surrogates(key)
                below.extend(item.values())
            elif isinstance(item, list):
                nested = True
                below.extend(item)
        if nested:
            depth += 1
            if depth > MAX_DEPTH:
                raise Refusal("nested deeper than %d levels" % MAX_DEPTH)
        level = below


def _check_surrogates(text):
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal("a lone surrogate in a string") from None


def parse_json(data):
    """Bytes of one JSON document to a value; refuses whatever two readers could understand differently."""
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
    if text.count("[") + text.count("{") > MAX_DEPTH or "\\u" in text:
        _check_depth_and_strings(value)
    return value


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
    if canonical_json(value) != data:
        raise Refusal("not the canonical JSON of its value")
    return value


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
        raise Refusal("%s is no base64" % _quote(text)) from None
    if base64.b64encode(data).decode("ascii") != text:
        raise Refusal("%s is no canonical base64" % _quote(text))
    return data


def _check_key_name(name):
    """C2SP: not empty, no Unicode space, no plus sign."""
    if not name or "+" in name or any(c.isspace() or unicodedata.category(c) == "Zs" for c in name):
        raise Refusal("%s is no key name" % _quote(name))


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
        raise Refusal("%s is no signature line" % _quote(line))
    name, separator, encoded = line[2:].partition(" ")
    if not separator:
        raise Refusal("%s is no signature line" % _quote(line))
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
        raise Refusal("%s is no tree size" % _quote(size_text))
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
