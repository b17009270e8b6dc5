"""Tables and views of a recording, as append-only numbered migrations. ``recordings/README.md`` documents them."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

APPLICATION_ID = 0x6D72706C
"""``mrpl``, in SQLite's application_id."""

migrations = Migrations("memreplay.recording")


@migrations()
def m001_tables_and_views(db: Database) -> None:
    _create_run_tables(db)
    _create_annotation_tables(db)
    _create_scores(db)


@migrations()
def m002_labels_counterfactuals_and_branches(db: Database) -> None:
    """Add labels by hand, counterfactuals, and branches of runs.

    In ``counterfactuals``, ``context`` is relative to the recorded prompt's, and ``score`` follows the reply. The
    ``edit`` of a branch is JSON; what it changed by hand is in its events too.
    """
    db.table("labels").create(
        {
            "conversation": int,
            "backend": str,
            "model": str,
            "question_id": str,
            "repeat": int,
            "turn": int,
            "by_hand": int,
            "label": str,
        },
        pk=("conversation", "backend", "model", "question_id", "repeat", "turn", "by_hand"),
        foreign_keys=[("conversation", "conversations", "key")],
        not_null={"label"},
    )
    db.create_view("judgements", _JUDGEMENTS)
    db.table("counterfactuals").create(
        {
            "key": int,
            "conversation": int,
            "backend": str,
            "model": str,
            "question_id": str,
            "repeat": int,
            "intervention": str,
            "context": str,
            "reply": str,
            "score": str,
        },
        pk="key",
        foreign_keys=[("conversation", "conversations", "key")],
        not_null={"conversation", "backend", "model", "question_id", "repeat", "intervention", "context", "reply"},
    )
    db.table("counterfactuals").create_index(
        ["conversation", "question_id", "backend", "model", "repeat", "intervention"], unique=True
    )
    db.table("branches").create(
        {"run_id": str, "parent": str, "conversation": str, "turn": int, "edit": str},
        pk="run_id",
        foreign_keys=[("run_id", "runs", "id"), ("parent", "runs", "id")],
        not_null={"parent", "conversation", "turn", "edit"},
    )


@migrations()
def m003_parts_of_events(db: Database) -> None:
    """Store what many events repeat once, as a row of ``parts``; drop from bodies what their columns say.

    Events of earlier runs keep the bodies that they have. The views read both.
    """
    db.table("parts").create({"key": int, "body": str}, pk="key", not_null={"body"})
    for name, query in _VIEWS.items():
        db.create_view(name, query, replace=True)


@migrations()
def m004_journal_of_an_agent(db: Database) -> None:
    """Add the journal: notes of what a running agent did, which a run is made of whenever the file is opened.

    ``at`` is in seconds since 1970; ``body`` is JSON.
    """
    db.table("captured").create(
        {"key": int, "source": str, "at": float, "body": str},
        pk="key",
        not_null={"source", "at", "body"},
    )


@migrations()
def m005_rejudgements(db: Database) -> None:
    """Add judgements of recorded answers by further judges and rubrics. ``body`` is JSON, without the prompt."""
    names = ("conversation", "backend", "model", "question_id", "repeat", "judge", "rubric")
    types: dict[str, type] = dict.fromkeys(names, str) | {"conversation": int, "repeat": int}
    db.table("rejudgements").create({**types, "body": str}, pk=names, not_null={"body"})


@migrations()
def m006_calls_of_writers(db: Database) -> None:
    """Add the view of what memories asked of models. Events of earlier runs have no text of these calls."""
    db.create_view("model_calls", _MODEL_CALLS)


@migrations()
def m007_doubts_about_verdicts(db: Database) -> None:
    """Add to the scores why a verdict is uncertain, and the judge of stages that decided it."""
    for name in ("failure_doubt", "failure_judge", "failure_by_rules"):
        db.table("scores").add_column(name, str)
    db.create_view("answers", _answers("failure, failure_detail, failure_doubt"), replace=True)


SCHEMA_VERSION = 7
"""Number of migrations, kept in SQLite's user_version."""


def _create_run_tables(db: Database) -> None:
    db.table("runs").create(
        {
            "id": str,
            "started_at": str,
            "finished_at": str,
            "status": str,
            "version": str,
            "fingerprint": str,
            "settings": str,
            "datasets": str,
        },
        pk="id",
        not_null={"started_at", "status", "version", "fingerprint", "settings", "datasets"},
    )
    db.table("conversations").create(
        {"key": int, "run_id": str, "position": int, "id": str, "dataset": str, "body": str},
        pk="key",
        foreign_keys=[("run_id", "runs", "id")],
        not_null={"run_id", "position", "id", "dataset", "body"},
    )
    db.table("conversations").create_index(["run_id", "id"], unique=True)
    db.table("events").create(
        {"key": int, "conversation": int, "backend": str, "turn": int, "kind": str, "changes": int, "body": str},
        pk="key",
        foreign_keys=[("conversation", "conversations", "key")],
        not_null={"conversation", "turn", "kind", "body"},
    )
    db.table("events").create_index(["conversation", "turn", "key"])
    db.table("events").create_index(["conversation", "kind"])
    db.table("texts").create({"hash": str, "body": str}, pk="hash", not_null={"body"})


def _create_annotation_tables(db: Database) -> None:
    db.table("bookmarks").create(
        {"conversation": int, "turn": int, "mark": str, "note": str},
        pk=("conversation", "mark"),
        foreign_keys=[("conversation", "conversations", "key")],
        not_null={"turn", "note"},
    )
    db.table("watches").create(
        {"key": int, "conversation": int, "text": str, "backend": str, "enabled": int},
        pk="key",
        foreign_keys=[("conversation", "conversations", "key")],
        not_null={"conversation", "text", "enabled"},
    )


def _create_scores(db: Database) -> None:
    """Create one row per row of ``results.json``, named by the ids that stand there."""
    db.table("scores").create(
        {
            "run_id": str,
            "dataset": str,
            "conversation": str,
            "question_id": str,
            "backend": str,
            "model": str,
            "repeat": int,
            "kind": str,
            "type": str,
            "question": str,
            "expected": str,
            "predicted": str,
            "outcome": str,
            "score": float,
            "max_score": float,
            "recorded_score": float,
            "failure": str,
            "failure_loss": str,
            "failure_detail": str,
            "closed_book_correct": int,
            "recall_at_1": float,
            "recall_at_5": float,
            "recall_at_10": float,
            "reciprocal_rank": float,
            "evidence_in_prompt": int,
            "exact_match": int,
            "entity_recall": float,
            "f1": float,
            "prompt_tokens": int,
            "completion_tokens": int,
            "cached_tokens": int,
            "cost_usd": float,
            "ms": float,
            "recall_ms": float,
            "error": str,
        },
        pk=("run_id", "conversation", "question_id", "backend", "model", "repeat"),
        foreign_keys=[("run_id", "runs", "id")],
        not_null={"dataset", "kind", "type", "question", "expected", "outcome", "max_score"},
    )


def _answers(failure: str) -> str:
    """Return the SQL of the scores for reading. ``failure`` names the columns of the verdict."""
    return f"""
select
  run_id, dataset, conversation, question_id, backend, model, repeat, kind, type, question, expected, predicted,
  outcome, case outcome when 'error' then null else outcome = 'correct' end as correct, {failure},
  recall_at_10, reciprocal_rank, evidence_in_prompt, prompt_tokens + completion_tokens as tokens, cost_usd, ms,
  recall_ms, error
from scores
"""


_MEMORY_WRITES = """
select
  e.key as event, c.run_id, c.id as conversation, e.backend, e.turn,
  coalesce(json_extract(p.body, '$.store'), json_extract(e.body, '$.operation.store')) as store,
  coalesce(json_extract(p.body, '$.command'), json_extract(e.body, '$.operation.command')) as command,
  coalesce(json_extract(p.body, '$.key'), json_extract(e.body, '$.operation.key')) as place,
  json_extract(e.body, '$.operation.change.kind') as change,
  json_extract(point.value, '$.id') as point,
  coalesce(
    t.body,
    json_extract(point.value, '$.payload.content'),
    json_extract(point.value, '$.payload'),
    json_extract(e.body, '$.operation.change.text'),
    json_extract(e.body, '$.operation.change.value'),
    json_extract(e.body, '$.operation.change.steps'),
    json_extract(e.body, '$.operation.change.ids')
  ) as written,
  json_extract(e.body, '$.operation.turns') as turns,
  coalesce(json_extract(p.body, '$.phase'), json_extract(e.body, '$.operation.phase')) as phase,
  coalesce(json_extract(p.body, '$.actor'), json_extract(e.body, '$.operation.actor')) as actor,
  json_extract(e.body, '$.operation.ms') as ms
from events e
join conversations c on c.key = e.conversation
left join parts p on p.key = json_extract(e.body, '$.operation.part')
left join json_each(e.body, '$.operation.change.points') point
left join texts t on t.hash = coalesce(
  json_extract(point.value, '$.payload.content."$"'),
  json_extract(e.body, '$.operation.change.text."$"'),
  json_extract(e.body, '$.operation.change.value."$"')
)
where e.kind = 'store_operated' and e.changes = 1
"""


def _candidate(name: str, hits: str) -> str:
    """Return the SQL of a candidate's field: in a column of the table of hits, or in the hit of an older format."""
    column = f"'$.{hits}.{name}'"
    return (
        f"case json_type(e.body, {column}) when 'array'"
        f" then json_extract(e.body, {column[:-1]}[' || hit.key || ']')"
        f" else coalesce(json_extract(e.body, {column}), json_extract(hit.value, '$.{name}')) end"
    )


def _recurring(name: str) -> str:
    """Return the SQL of a field that is in a candidate's part, or in the hit of an older format."""
    return f"coalesce(json_extract(p.body, '$.{name}'), json_extract(hit.value, '$.{name}'))"


_TEXT_REFERENCE = 'text."$"'

_RETRIEVALS = " union all ".join(
    f"""
select
  e.key as event, c.run_id, c.id as conversation, e.backend, e.turn,
  json_extract(e.body, '$.question_id') as question_id,
  json_extract(e.body, '$.model') as model,
  json_extract(e.body, '$.repeat') as repeat,
  {missed} as missed,
  coalesce(json_extract(e.body, '$.{hits}.first') + hit.key, {_candidate("rank", hits)}) as rank,
  {_recurring("id")} as id,
  {_recurring("store")} as store,
  {_recurring("place")} as place,
  {_candidate("score", hits)} as score,
  {_candidate("in_prompt", hits)} as in_prompt,
  {_candidate("tokens", hits)} as tokens,
  {_recurring("turns")} as turns,
  {_recurring("sources")} as sources,
  coalesce(t.body, {_recurring("text")}) as text
from events e
join conversations c on c.key = e.conversation
join json_each(coalesce(json_extract(e.body, '$.{hits}.part'), json_extract(e.body, '$.{hits}'))) hit
left join parts p on p.key = case hit.type when 'integer' then hit.value end
left join texts t on t.hash = {_recurring(_TEXT_REFERENCE)}
where e.kind in ('perceived', 'question_asked')
"""
    for missed, hits in ((0, "hits"), (1, "missed"))
)

_PROMOTIONS = """
select
  e.key as event, c.run_id, c.id as conversation, e.backend, e.turn,
  json_extract(e.body, '$.decision.decision') as decision,
  coalesce(t.body, json_extract(e.body, '$.decision.content')) as content,
  json_extract(e.body, '$.decision.slot') as slot,
  json_extract(e.body, '$.decision.score') as score,
  json_extract(e.body, '$.decision.threshold') as threshold,
  json_extract(e.body, '$.decision.factors.certainty') as certainty,
  json_extract(e.body, '$.decision.factors.impact') as impact,
  json_extract(e.body, '$.decision.factors.age_days') as age_days,
  json_extract(e.body, '$.decision.factors.accesses') as accesses,
  json_extract(e.body, '$.decision.factors.age_decay') as age_decay,
  json_extract(e.body, '$.decision.factors.recency_boost') as recency_boost,
  json_extract(e.body, '$.decision.sources') as sources,
  json_extract(e.body, '$.decision.knowledge_id') as knowledge_id,
  json_extract(e.body, '$.decision.superseded_id') as superseded_id,
  coalesce(why.body, json_extract(e.body, '$.decision.justification')) as justification
from events e
join conversations c on c.key = e.conversation
left join texts t on t.hash = json_extract(e.body, '$.decision.content."$"')
left join texts why on why.hash = json_extract(e.body, '$.decision.justification."$"')
where e.kind = 'promotion_decided'
"""

_JUDGEMENTS = """
select
  e.key as event, c.run_id, c.id as conversation, e.backend, e.turn,
  json_extract(e.body, '$.model') as model,
  json_extract(e.body, '$.question_id') as question_id,
  json_extract(e.body, '$.repeat') as repeat,
  json_extract(e.body, '$.judgement.judge') as judge,
  json_extract(e.body, '$.judgement.rubric') as rubric,
  json_extract(e.body, '$.judgement.verdict') as verdict,
  json_extract(e.body, '$.judgement.problem') as problem,
  coalesce(t.body, json_extract(e.body, '$.judgement.reply.text')) as reply,
  coalesce(p.body, json_extract(e.body, '$.judgement.prompt[1].segments[0]')) as material,
  coalesce(i.body, json_extract(e.body, '$.judgement.prompt[0].segments[0]')) as instructions,
  json_extract(e.body, '$.judgement.reply.usage.prompt')
    + json_extract(e.body, '$.judgement.reply.usage.completion') as tokens,
  json_extract(e.body, '$.judgement.reply.cost_usd') as cost_usd
from events e
join conversations c on c.key = e.conversation
left join texts t on t.hash = json_extract(e.body, '$.judgement.reply.text."$"')
left join texts p on p.hash = json_extract(e.body, '$.judgement.prompt[1].segments[0]."$"')
left join texts i on i.hash = json_extract(e.body, '$.judgement.prompt[0].segments[0]."$"')
where e.kind = 'answer_judged'
"""


def _of_call(name: str) -> str:
    """Return the SQL of a field of a call, as it stands in the body or as a text stored once."""
    text = f"(select body from texts where hash = json_extract(call.value, '$.{name}.\"$\"'))"
    return f"coalesce({text}, json_extract(call.value, '$.{name}')) as {name}"


_MODEL_CALLS = f"""
select
  e.key as event, c.run_id, c.id as conversation, e.backend, e.turn,
  coalesce(json_extract(call.value, '$.purpose'), 'extraction') as purpose,
  json_extract(call.value, '$.phase') as phase,
  json_extract(call.value, '$.turns') as turns,
  json_extract(call.value, '$.model') as model,
  (
    select group_concat(coalesce(t.body, json_extract(message.value, '$.text')), char(10) || char(10))
    from json_each(call.value, '$.messages') message
    left join texts t on t.hash = json_extract(message.value, '$.text."$"')
  ) as prompt,
  {_of_call("parameters")},
  {_of_call("reply")},
  {_of_call("wanted")},
  json_extract(call.value, '$.finish_reason') as finish_reason,
  json_extract(call.value, '$.cut_at') as cut_at,
  json_extract(call.value, '$.read') as read,
  {_of_call("rejected")},
  coalesce(json_extract(call.value, '$.repeat'), 0) as repeat,
  coalesce(json_extract(call.value, '$.prompt_tokens'), 0) as prompt_tokens,
  coalesce(json_extract(call.value, '$.completion_tokens'), 0) as completion_tokens,
  json_extract(call.value, '$.cost_usd') as cost_usd,
  coalesce(json_extract(call.value, '$.ms'), 0) as ms,
  coalesce(json_extract(call.value, '$.reused'), 0) as reused,
  {_of_call("error")}
from events e
join conversations c on c.key = e.conversation
join json_each(e.body) call on call.key in ('call', 'extraction')
where e.kind in ('model_called', 'facts_extracted')
"""

_VIEWS = {
    "answers": _answers("failure, failure_detail"),
    "memory_writes": _MEMORY_WRITES,
    "retrievals": _RETRIEVALS,
    "promotions": _PROMOTIONS,
}

VIEWS_OF_EARLIER_FORMATS = {
    "memory_writes": "96e1531518e436823c2b0d9cdde78fbc6dcf7c4c865a80711d1ebcfdc274ab99",
    "retrievals": "83024a7167906896adfccf55ef02ca13b864b912d6ef27a8401479bc3c9e9136",
}
"""Digests of the views of formats 1 and 2 that format 3 defines anew."""
REDEFINES_EARLIER = "m007_doubts_about_verdicts"
"""The migration that defines a table and a view of earlier formats anew."""
