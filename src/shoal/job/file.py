"""Turn a job file into objects. All problems of a job are reported at once.

>>> job = Job.parse('''
... [schema]
... subject = "person"
... [schema.quasi]
... age = { range = [0, 120], step = 1 }
... [policy]
... k = 10
... delay = { rows = 1000 }
... [algorithm]
... name = "tide"
... ''')
>>> job.policy.k, job.anonymizer.name
(10, 'tide')
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import pydantic

from shoal import algorithms
from shoal.algorithms.registry import DEFAULT, check_support
from shoal.arrow.labels import Labels
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.engine.base import Anonymizer
from shoal.engine.space import Loss
from shoal.errors import JobError, Problem, did_you_mean
from shoal.io.connector import InputEndpoint, OutputEndpoint
from shoal.io.formats import file_type
from shoal.io.registry import endpoint
from shoal.job.domains import Files, quasi_domain, sensitive_domain
from shoal.job.endpoints import (
    Checkpoints,
    Cluster,
    checkpoints_of,
    cluster_of,
    digests,
    name_of,
    refuse_remote,
)
from shoal.job.form import (
    REQUIRED,
    SECTIONS,
    AuditForm,
    BadRowsForm,
    DomainForm,
    Form,
    PolicyForm,
    PrivateForm,
    PublishForm,
    QuasiForm,
    RunForm,
    SchemaForm,
    SparkForm,
    endpoint_form,
    keyed,
    problems_of,
    shown,
)
from shoal.job.policy import check_policy, parts_of, policy_of
from shoal.job.toml import DATA_FIRST, MAX_BYTES, is_data, parse_toml
from shoal.job.warnings import warnings_of
from shoal.run.pipeline import Pipeline
from shoal.run.state.retention import Retention
from shoal.spec.files import UnreadableError, read_whole
from shoal.spec.hierarchy import Domain
from shoal.spec.ladder import AnyDomain
from shoal.spec.policy import Policy
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = ["BadRows", "Job", "Private"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BadRows:
    """What happens to rows that can't be used, their file, and the share that ends a run."""

    action: Literal["quarantine", "stop"]
    file: Path
    limit: float = 1.0
    #: Whether the job names the file; else it has the name of the job.
    is_named: bool = True


@dataclass(frozen=True, slots=True)
class Private:
    """How trace and quarantine are kept: whether they are sealed, and when files are removed."""

    is_sealed: bool
    retention: Retention


@dataclass(frozen=True, slots=True)
class Job:
    """A checked job file.

    ``digests`` identify the sections that a checkpoint depends on; ``warnings`` are sentences about
    choices that are allowed but weaken something; ``files`` are the hierarchies that it names;
    ``audit_sample`` is the share of groups that is audited while it runs; ``sections`` are the
    promise and the algorithm as they are in the file; ``private`` says how trace and quarantine
    are kept, if they are folders of files that are rotated.
    """

    schema: Schema
    policy: Policy
    anonymizer: Anonymizer
    publish: Publish
    input: InputEndpoint
    output: OutputEndpoint
    bad_rows: BadRows
    seed: int | None
    name: str
    checkpoints: Checkpoints | None
    spark: Cluster
    digests: Mapping[str, str] = dataclasses.field(repr=False)
    warnings: tuple[str, ...]
    files: tuple[Path, ...] = ()
    audit_sample: float = 0.0
    sections: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    private: Private | None = None

    @classmethod
    def load(cls, path: str | Path) -> Job:
        """Read a job file; paths in it are relative to it.

        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "job.toml"
        >>> _ = path.write_text('''
        ... schema = { subject = "person", quasi = { age = { range = [0, 120] } } }
        ... policy = { k = 10, delay = { rows = 1000 } }
        ... algorithm = { name = "tide" }
        ... ''')
        >>> Job.load(path).policy
        Policy(KAnonymity(k=10), delay=Delay(rows=1000, seconds=None, clock=None))

        Raises
        ------
        JobError
            With all problems of the file.
        """
        path = Path(path)
        try:
            text = read_whole(path, MAX_BYTES).decode("utf-8-sig")
        except FileNotFoundError:
            draft = "`shoal init DATA -o job.toml` drafts one"
            problem = Problem("job", "doesn't exist", None, draft)
            raise JobError(problem, where=str(path)) from None
        except UnreadableError as error:
            raise JobError(Problem("job", f"can't be read: {error}"), where=str(path)) from None
        except UnicodeDecodeError:
            fix = DATA_FIRST if is_data(str(path)) else None
            raise JobError(Problem("job", "isn't UTF-8 text", None, fix), where=str(path)) from None
        return cls.parse(text, folder=path.parent, where=str(path))

    @classmethod
    def parse(cls, text: str, *, folder: Path | None = None, where: str | None = None) -> Job:
        """Read a job from text."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise JobError(Problem("job", "isn't UTF-8 text"), where=where) from None
        return cls.from_dict(parse_toml(text, where), folder=folder, where=where)

    @classmethod
    def from_dict(
        cls, sections: Mapping[str, Any], *, folder: Path | None = None, where: str | None = None
    ) -> Job:
        """Return the job with these sections, which are those of a job file.

        >>> job = Job.from_dict({
        ...     "schema": {"subject": "person", "quasi": {"age": {"range": [0, 120]}}},
        ...     "policy": {"k": 10, "delay": {"rows": 1000}},
        ...     "algorithm": {"name": "tide"},
        ... })
        >>> job.policy.k
        10
        """
        reader = _Reader(copy.deepcopy(dict(sections)), folder or Path(), where)
        job = reader.job()
        if job is None:
            raise JobError(reader.problems, where=where)
        return job

    def under(self, sections: Mapping[str, Any], digests: Mapping[str, str]) -> Job:
        """Return this job with another promise and algorithm, as its sections were.

        ``digests`` are those of the job that it becomes.
        """
        reader = _Reader(copy.deepcopy(dict(sections)), Path(), None)
        policy, anonymizer = reader.promise()
        if policy is None or anonymizer is None:
            raise JobError(reader.problems)
        return dataclasses.replace(
            self,
            policy=policy,
            anonymizer=anonymizer,
            digests=dict(digests),
            sections=dict(sections),
        )

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline of this job."""
        seed = None if self.seed is None else self.seed.to_bytes(16, "big", signed=True)
        return Pipeline(self.schema, self.policy, self.anonymizer, self.publish, seed)


class _Reader:
    """Build the parts of a job and collect their problems."""

    def __init__(self, raw: dict[str, Any], folder: Path, where: str | None) -> None:
        self._raw = raw
        self._folder = folder
        self._where = where
        self._files = Files(folder)
        self.problems: list[Problem] = []

    def job(self) -> Job | None:
        """Return the job, or None if there are problems."""
        for section in self._raw:
            if section not in SECTIONS:
                fix = did_you_mean(section, SECTIONS)
                self.problems.append(Problem(section, "is an unknown section", None, fix))
        schema = self._section("schema", SchemaForm, self._schema)
        policy, anonymizer = self.promise()
        publish = self._section("publish", PublishForm, self._publish)
        source = self._section(
            "input",
            endpoint_form("input"),
            lambda raw: endpoint("input", raw.model_dump(exclude_unset=True), self._folder),
        )
        sink = self._section(
            "output",
            endpoint_form("output"),
            lambda raw: endpoint("output", raw.model_dump(exclude_unset=True), self._folder),
        )
        run = self._section("run", RunForm, self._run)
        bad_rows = self._section("bad_rows", BadRowsForm, self._bad_rows)
        private = None
        if "private" in self._raw:
            private = self._section("private", PrivateForm, self._private)
        sample = self._section("audit", AuditForm, _sample_of)
        cluster = self._section("spark", SparkForm, cluster_of)
        if policy is not None and schema is not None:
            raw_policy = self._raw["policy"]
            self._attempt("policy", lambda: check_policy(policy, schema, raw_policy))
        if policy is not None and anonymizer is not None:
            self._attempt("algorithm", lambda: check_support(anonymizer, policy))
        if publish is not None and schema is not None and policy is not None:
            self._attempt("publish", lambda: publish.check(policy, schema))
            if all(quasi.has_sides for quasi in schema.quasi):
                self._attempt("publish", lambda: Labels(schema, publish.numeric))
        if self.problems:
            return None
        assert schema is not None
        assert policy is not None
        assert anonymizer is not None
        assert publish is not None
        assert source is not None
        assert sink is not None
        assert run is not None
        assert bad_rows is not None
        assert cluster is not None
        assert sample is not None
        seed, name, checkpoints = run
        source = source.with_numbers(schema.numbers).with_job(name)
        return Job(
            schema, policy, anonymizer, publish, source, sink, bad_rows, seed, name, checkpoints,
            cluster, digests(self._raw, self._files.read),
            tuple(warnings_of(schema, policy, anonymizer, publish, seed)),
            tuple(self._folder / name for name in self._files.read),
            sample,
            {name: self._raw.get(name, {}) for name in ("policy", "algorithm")},
            private,
        )  # fmt: skip

    def promise(self) -> tuple[Policy | None, Anonymizer | None]:
        """Return what is promised and what keeps it; None where there are problems."""
        policy = self._section("policy", PolicyForm, policy_of)
        return policy, self._attempt("algorithm", self._anonymizer)

    def _publish(self, raw: PublishForm) -> Publish:
        fields = raw.model_dump() | {"pseudonym": None}
        if (form := raw.pseudonym) is None:
            return Publish(**fields)
        pseudonym = self._attempt("publish.pseudonym", lambda: Pseudonym(form.rotate))
        return Publish(**fields | {"pseudonym": pseudonym})

    def _run(self, raw: RunForm) -> tuple[int | None, str, Checkpoints | None]:
        return raw.seed, name_of(raw, self._where), checkpoints_of(raw, self._folder)

    def _section(self, name: str, model: type[Form], build: Callable[[Any], T]) -> T | None:
        if name not in self._raw and name in REQUIRED:
            self.problems.append(Problem(name, "is missing", None, f"Add a section [{name}]"))
            return None
        if not isinstance(self._raw.get(name, {}), dict):
            self.problems.append(Problem(name, "must be a section", None, f"Write [{name}]"))
            return None
        try:
            checked = model.model_validate(self._raw.get(name, {}))
        except pydantic.ValidationError as error:
            self.problems += problems_of(name, model, error)
            self._check_rest(name, model, build, error)
            return None
        return self._attempt(name, lambda: build(checked))

    def _check_rest(
        self, name: str, model: type[Form], build: Callable[[Any], T],
        error: pydantic.ValidationError,
    ) -> None:  # fmt: skip
        """Collect further problems of a section, without the parts of a wrong form."""
        rest = copy.deepcopy(self._raw[name])
        wrong: set[int | str] = set()
        for found in error.errors():
            place = list(found["loc"][: 2 if found["loc"][0] in ("quasi", "sensitive") else 1])
            wrong.add(place[0])
            table = rest
            for part in place[:-1]:
                table = table.get(part, {})
            table.pop(place[-1], None)
        if model is SchemaForm:
            rest.setdefault("subject", {"each_row": True})
            if "quasi" in wrong and not rest.get("quasi"):
                return
        try:
            checked = model.model_validate(rest)
        except pydantic.ValidationError:
            return
        if isinstance(checked, PolicyForm):
            self._attempt(name, lambda: parts_of(checked, {str(key) for key in wrong}))
        elif rest:
            self._attempt(name, lambda: build(checked))

    def _attempt(self, key: str, build: Callable[[], T]) -> T | None:
        """Build a part; collect its problems under a key of the job file."""
        try:
            return build()
        except JobError as error:
            self.problems += [keyed(key, problem) for problem in error.problems]
            return None

    def _schema(self, raw: SchemaForm) -> Schema:
        before = len(self.problems)
        quasi = [
            Quasi(name, domain, float(spec.weight))
            for name, spec in raw.quasi.items()
            if (domain := self._domain(f"schema.quasi.{name}", spec)) is not None
        ]
        sensitive = [
            Sensitive(name, self._known(f"schema.sensitive.{name}", spec))
            for name, spec in raw.sensitive.items()
        ]
        if len(self.problems) > before:
            raise JobError(())
        return Schema(
            subject=raw.subject if isinstance(raw.subject, str) else None,
            quasi=quasi,
            sensitive=sensitive,
            keep=raw.keep.columns,
            time=raw.time,
        )

    def _domain(self, key: str, spec: QuasiForm) -> AnyDomain | None:
        return self._attempt(key, lambda: quasi_domain(key, spec, self._files))

    def _known(self, key: str, spec: DomainForm) -> Domain | None:
        return self._attempt(key, lambda: sensitive_domain(key, spec, self._files))

    def _anonymizer(self) -> Anonymizer:
        raw = self._raw.get("algorithm")
        if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
            fix = (
                f'Add [algorithm] with name = "{DEFAULT}", or one of: '
                f"{', '.join(algorithms.names())}"
            )
            raise JobError(Problem("algorithm.name", "is missing", None, fix))
        knobs = dict(raw)
        algorithm = algorithms.find(knobs.pop("name"))
        fields = [field.name for field in dataclasses.fields(algorithm)]
        problems = [
            Problem(f"algorithm.{knob}", f"isn't a knob of '{algorithm.name}'", None,
                    did_you_mean(knob, fields))
            for knob in knobs
            if knob not in fields
        ]  # fmt: skip
        measures = get_args(Loss)
        if (loss := knobs.get("loss", measures[0])) not in measures:
            what = f"must be one of {', '.join(measures)}"
            problems.append(
                Problem("algorithm.loss", what, shown(loss), did_you_mean(str(loss), measures))
            )
        if problems:
            raise JobError(problems)
        return algorithm(**knobs)

    def _private(self, raw: PrivateForm) -> Private:
        problems = [
            Problem(f"private.{key}", "must be a number above 0", f"{value:g}")
            for key in PrivateForm.model_fields
            if key != "seal" and (value := getattr(raw, key)) is not None and not value > 0
        ]
        run = self._raw.get("run")
        checkpoint = run.get("checkpoint") if isinstance(run, dict) else None
        if not isinstance(checkpoint, dict):
            what = "is for long-running jobs, and this one has no checkpoints"
            fix = 'Set run.checkpoint, for example { folder = "state", every = 10 }'
            problems.append(Problem("private", what, None, fix))
        elif raw.seal and "seal" not in checkpoint:
            what = "needs a key, and the job names none"
            fix = 'Set seal in run.checkpoint, for example seal = "env:SHOAL_KEY"'
            problems.append(Problem("private.seal", what, None, fix))
        keep = {"keep_megabytes": raw.keep_megabytes, "keep_days": raw.keep_days}
        if raw.file_megabytes is None and raw.file_hours is None:
            what = "removes closed files, and no key says when a file is closed"
            fix = "Set file_megabytes or file_hours, for example file_hours = 24"
            problems += [
                Problem(f"private.{key}", what, None, fix)
                for key, value in keep.items()
                if value is not None
            ]
        if problems:
            raise JobError(problems)

        def times(value: float | None, unit: float) -> float | None:
            return None if value is None else value * unit

        return Private(
            raw.seal,
            Retention(
                file_bytes=times(raw.file_megabytes, 1e6),
                file_seconds=times(raw.file_hours, 3600),
                keep_bytes=times(raw.keep_megabytes, 1e6),
                keep_seconds=times(raw.keep_days, 86400),
            ),
        )

    def _bad_rows(self, raw: BadRowsForm) -> BadRows:
        if not 0 <= raw.limit <= 1:
            what = "must be a share of all rows, from 0 to 1"
            raise JobError(
                Problem("bad_rows.limit", what, f"{raw.limit:g}", "For example limit = 0.05")
            )
        if raw.file is not None:
            refuse_remote("bad_rows.file", raw.file)
        if "private" in self._raw:
            # A folder, whose files have names of their own.
            folder = self._name().removesuffix(".jsonl") if raw.file is None else raw.file
            return BadRows(
                raw.action, self._folder / folder, float(raw.limit), raw.file is not None
            )
        name = self._name() if raw.file is None else raw.file
        try:
            # Checked now, and not when the first bad row comes.
            file_type(name)
        except JobError as error:
            problem = dataclasses.replace(error.problems[0], key="bad_rows.file")
            if name.endswith("/") or not Path(name).suffix:
                fix = "A folder needs the section [private], which is missing; else name a file"
                problem = dataclasses.replace(problem, fix=fix)
            raise JobError(problem) from None
        return BadRows(raw.action, self._folder / name, float(raw.limit), raw.file is not None)

    def _name(self) -> str:
        """Return the default name of the quarantine file: two jobs of a folder have two."""
        run = self._raw.get("run")
        named = run.get("name") if isinstance(run, dict) else None
        raw = RunForm(name=named if isinstance(named, str) else None)
        try:
            return f"{name_of(raw, self._where)}.quarantine.jsonl"
        except JobError:
            # What is wrong with the name is reported by its own section.
            return f"{name_of(RunForm(), self._where)}.quarantine.jsonl"


def _sample_of(raw: AuditForm) -> float:
    if not 0 <= raw.sample <= 1:
        what = "must be a share of all groups, from 0 to 1"
        raise JobError(
            Problem("audit.sample", what, f"{raw.sample:g}", "For example sample = 0.01")
        )
    return float(raw.sample)
