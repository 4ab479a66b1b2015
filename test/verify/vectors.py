"""Holds verify/boundbook_verify.py to the vectors of docs/formats/vectors.md: the vectors as JSON on standard input, on
standard output a JSON object that has for each member the list of its vectors that are not met."""

import json
import os
import sys
import tempfile
from fractions import Fraction

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "verify"))
sys.dont_write_bytecode = True

import boundbook_verify as v  # noqa: E402


def accepted(function, *arguments):
    try:
        function(*arguments)
    except v.Refusal:
        return False
    return True


def slot(vector):
    shards = {count: v.shard_of(vector["id"], int(count)) for count in vector["shards"]}
    return (v.slot_id(vector["tuple"]), shards) == (vector["id"], vector["shards"])


def plan(vector):
    models = {name: {"weights": "w", **({"training_seeds": seeds} if seeds else {})} for name, seeds in vector["models"].items()}
    protocol = {
        "queues": vector["queues"],
        "models": models,
        "arms": {name: {"model": model, "condition": "c"} for name, model in vector["arms"].items()},
        "conditions": {"c": {"prompt": {"user": "x"}, "grader": {"kind": "report", "reward": {"min": 0, "max": 1}}}},
        "analysis": {},
    }
    sets = {name: task_set(ids) for name, ids in vector["task_sets"].items()}
    return v.Plan(protocol, sets).digest() == {"count": vector["count"], "digest": vector["digest"]}


def task_set(ids, fields=None):
    tasks = v.TaskSet()
    for task in ids:
        tasks.add(task, json.dumps(fields or {"id": task}).encode("utf-8"))
    return tasks


def tree(vector):
    pairs = [(path, v.sha256_hex(text.encode("utf-8"))) for path, text in vector["files"].items()]
    return (v.tree_digest(pairs), v.oms_root(pairs)) == (vector["digest"], vector["oms_root"])


def entries(vectors):
    grown, failed = v.Tree(), []
    for vector in vectors:
        body = vector["body"].encode("utf-8")
        grown.append(v.leaf_hash(body))
        found = (v.leaf_hash(body).hex(), grown.root().hex(), v.ENTRY_FORM(v.parse_canonical(body)))
        if found != (vector["leaf"], vector["root"], None):
            failed.append(vector)
    return failed


def canonical(vector):
    data = v.canonical_json(v.parse_json(vector["json"].encode("utf-8")))
    return (v.digest_of(data), len(data)) == (vector["digest"], vector["bytes"])


def attribution(vector):
    rules = v.Rules(vector["rules"])
    return [case for case in vector["cases"] if rules.attribute(case["signals"]) != (case["attribution"], case["rule"])]


class OneSlotPlan:
    """What the life of one slot needs of a plan."""

    def __init__(self, vector):
        self._vector = vector
        self._tasks = task_set([vector["key"]["task"]])

    def has(self, key):
        return key == self._vector["key"]

    def tasks(self, _):
        return self._tasks

    def reward_range(self, _):
        return self._vector["reward"]["min"], self._vector["reward"]["max"]

    def sampling_seed(self, key):
        return v.sampling_seed(self._vector["namespace"], self._vector["bits"], v.slot_tuple(key))


class NoEvidence:
    """Vectors of lives have no objects."""

    def check_request(self, *_):
        pass

    def check_stage(self, *_):
        pass


def lives(vector):
    failed = []
    for life in vector["lives"]:
        audit = life_audit(vector)
        for at, (entry, expected) in enumerate(life["steps"]):
            before = audit.outcome.count
            held = audit.slots.get(bytes.fromhex(vector["slot"]))
            make_room(audit, held, entry)
            audit.judge(entry)
            held = audit.slots.get(bytes.fromhex(vector["slot"]))
            state = held.state if audit.outcome.count == before and held else None
            if state != expected:
                failed.append([life["what"], at, state])
    return failed


def life_audit(vector):
    attempts = {name: vector[name] for name in ("replacements", "regrades", "rules")}
    manifest = v.Manifest.__new__(v.Manifest)
    manifest.value, manifest.digest = {}, None
    manifest.protocol = {"attempts": attempts, "runner": {"adapter": "openai", "service": {}}, "arms": {"M": {"model": "M", "condition": "c"}}}
    audit = v.LedgerAudit("life", manifest, None, {}, v.Outcome())
    audit.opened = {"ledger": "00" * 16}
    audit.plan, audit.evidence = OneSlotPlan(vector), NoEvidence()
    return audit


def make_room(audit, held, entry):
    """Lives leave out sessions and unblinding: makes them such that an entry does not fail for them."""
    if "session" in entry:
        audit.sessions[entry["session"]] = v.Session(("another boot", 2, "2"))
    if "evidence" in entry:
        held.session = v.Session((entry["evidence"]["boot_id"], entry["evidence"]["pid"], "1"))
    if "late" in entry:
        audit.unblinded = {"partial": True} if entry["late"] else None


class AnyObject:
    """A pack in which every object is there."""

    def read(self, _):
        return b""


def request(vector):
    key = {"queue": "q", "arm": "a", "training_seed": None, "evaluation_seed": 0, "task": "t1", "rep": 0}
    protocol = {
        "runner": {"adapter": "openai", "endpoint": vector["endpoint"]},
        "conditions": {"c": vector["condition"]},
        "arms": {"a": {"model": vector["model"], "condition": "c"}},
        "models": {vector["model"]: {}},
        "queues": {"q": {"tasks": "s", "reps": 1, "arms": ["a"]}},
        "analysis": {},
    }
    sets = {"s": task_set(["t1"], vector["fields"])}
    entry = {"kind": "first", "request": vector["digest"], "key": key, "sampling_seed": vector["seed"]}
    try:
        v.Evidence(v.Plan(protocol, sets), AnyObject(), v.Outcome(), None).check_request(entry, "")
    except v.Violation:
        return False
    return v.digest_of(vector["text"].encode("utf-8")) == vector["digest"]


def answer(vector):
    body = vector["body"].encode("utf-8")
    found = v.Answer(body, vector["endpoint"], vector["model"])
    if "cause" in vector:
        error = (v.body_error(body) or (None, None)) if found.cause == "body_error" else (None, None)
        if found.error_word is not None:
            error = (None, found.error_word)
        return (found.cause, *error) == (vector["cause"], vector["embedded_status"], vector["exception"])
    usage = {"prompt_tokens": found.prompt_tokens, "completion_tokens": found.completion_tokens}
    said = (found.cause, found.text, found.finish_reason, None if set(usage.values()) == {None} else usage)
    return said == (None, vector["text"], vector["finish_reason"], vector["usage"])


def grading(vector):
    candidate = bytes.fromhex(vector["answer_hex"])
    grader = {"kind": vector["kind"], "answer": "a"}
    report, value = v.grade(grader, "t1", vector["reference"], candidate, v.digest_of(candidate))
    return (report.decode("utf-8"), v.digest_of(report), value) == (vector["report"], vector["digest"], vector["value"])


def command_report(vector):
    def valid(report):
        fixed = (vector["task"], vector["candidate"], vector["reward"], vector["expected_tests"])
        return accepted(v.check_report, report.encode("utf-8"), *fixed)

    return [one for one in vector["valid"] if not valid(one)] + [one for one in vector["invalid"] if valid(one)]


def ends(bound):
    return [str(bound.lower), str(bound.upper)]


def bound(vector):
    rows = []
    for arm in vector["arms"]:
        cells = []
        for task in arm["tasks"]:
            cells.append(v.Cell(task["planned"]))
            for value in task["values"]:
                cells[-1].add(value)
        rows.append(v.Row(cells, (arm["reward"]["min"], arm["reward"]["max"])))
    first, second = [row.bound() for row in rows]
    difference = first.minus(second)
    doubles = [v.figure(end)["value"] for end in (difference.lower, difference.upper)]
    decided = [v.decide({**one, "when_met": "", "otherwise": ""}, difference)[0] for one in vector["decisions"]]
    return (
        [ends(row.bound()) for row in rows] == [arm["bound"] for arm in vector["arms"]]
        and ends(difference) == vector["difference"]
        and ends(v.mean_bound([first, second])) == vector["mean"]
        and doubles == vector["values"]
        and decided == [one["status"] for one in vector["decisions"]]
    )


def draw(vector):
    generator = v.Generator(vector["seed"])
    return [generator.uniform() for _ in vector["u"]] == vector["u"]


def interval(vector):
    differences = [[Fraction(value) for value in row] for row in vector["differences"]]
    shape = (len(differences), len(differences[0]))
    found = v.resampled_statistics(differences, v.draw_counts(vector["seed"], vector["resamples"], *shape))
    spread = v.population_variance(found)
    found.sort()
    tail = (1 - vector["level"]) / 2
    total, pairs, tasks, together = [str(part) for part in v.exact_variances(differences)]
    shown = [v.quantile(found, tail), v.quantile(found, 1 - tail), spread, [pairs, tasks, together, total]]
    return shown == [vector["lower"], vector["upper"], vector["resampled"], vector["exact"]]


def note(vector):
    read = v.parse_note(vector["note"].encode("utf-8"))
    checkpoint = v.parse_checkpoint(read.text)
    verdicts = [
        v.signature_verdicts(read, checkpoint.origin, [v.VerifierKey(vector[key])]) for key in ("vkey", "origin_vkey")
    ]
    read_as = [[(key.cosigns, holds) for key, holds in one] for one in verdicts]
    return (checkpoint.size, checkpoint.root.hex(), read_as) == (vector["size"], vector["root"], [[(False, True)]] * 2)


class OneFile:
    """A source with one file."""

    def __init__(self, data):
        self._data = data

    def open(self, _):
        file = tempfile.TemporaryFile()
        file.write(self._data)
        file.seek(0)
        return file


def pack(vector):
    digest = v.digest_of(vector["text"].encode("utf-8"))
    read = []
    for record in (vector["record"], vector["redacted"]):
        one = v.Pack(OneFile(record.encode("utf-8")), "objects.pack")
        one.load()
        read.append((one.faults, one.size, one.redacted, one.read(digest)))
    return read == [([], 1, 0, vector["text"].encode("utf-8")), ([], 1, 1, None)]


def unmet(check):
    return lambda vectors: [vector for vector in vectors if not check(vector)]


CHECKS = {
    "slot": unmet(slot),
    "sampling_seed": unmet(lambda x: v.sampling_seed(x["namespace"], x["bits"], x["tuple"]) == x["seed"]),
    "order": unmet(lambda x: v.order_key(x["namespace"], x["id"]) == x["key"]),
    "attempt": unmet(lambda x: v.attempt_id(x["slot"], x["k"]) == x["id"]),
    "plan": unmet(plan),
    "tree": unmet(tree),
    "entry": entries,
    "number": unmet(lambda x: v.canonical_text(v.parse_json(x["json"].encode("utf-8"))) == x["canonical"]),
    "canonical": unmet(canonical),
    "strict": lambda x: [one for one in x["accepted"] if not accepted(v.parse_json, one.encode("utf-8"))]
    + [one for one in x["refused"] if accepted(v.parse_json, one.encode("utf-8"))],
    "task_id": lambda x: [one for one in x["accepted"] if not v.is_task_id(one)]
    + [one for one in x["refused"] if v.is_task_id(one)],
    "attribution": lambda vectors: [case for vector in vectors for case in attribution(vector)],
    "life": lambda vectors: [step for vector in vectors for step in lives(vector)],
    "request": unmet(request),
    "answer": unmet(answer),
    "grading": unmet(grading),
    "command_report": command_report,
    "bound": unmet(bound),
    "draw": unmet(draw),
    "interval": unmet(interval),
    "note": unmet(note),
    "pack": unmet(pack),
}

vectors = json.load(sys.stdin)
json.dump({name: CHECKS[name](vectors[name]) if name in CHECKS else "unknown" for name in vectors}, sys.stdout)
