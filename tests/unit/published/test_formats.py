"""Question, answer, context and judgement are found in the shapes of every harness."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from memreplay.published.answers import PublishedRun
from memreplay.published.files import read_source

Q, A, KEY = "What did Ann make?", "A blue bowl.", "a blue bowl"

PHASES = {
    "search": {"status": "completed", "results": [{"memory": "Ann made a bowl", "score": 0.5}], "durationMs": 20},
    "answer": {"status": "completed", "hypothesis": A, "durationMs": 30},
    "evaluate": {"status": "completed", "label": "correct", "explanation": "same"},
}

SHAPES: dict[str, Any] = {
    "mem0's evaluation of 2025": {
        "0": [
            {
                "question": Q,
                "answer": KEY,
                "category": 4,
                "response": A,
                "speaker_1_memories": [{"memory": "Ann made a bowl", "timestamp": "4 May 2023", "score": 0.5}],
                "speaker_2_memories": [],
                "num_speaker_1_memories": 1,
                "speaker_1_memory_time": 0.02,
                "speaker_1_graph_memories": None,
                "response_time": 0.03,
                "llm_score": 1,
            }
        ]
    },
    "supermemory's memorybench": {
        "runId": "r",
        "provider": "mem0",
        "benchmark": "locomo",
        "judge": "gpt-4o",
        "answeringModel": "gpt-4.1",
        "questions": {
            "conv-1-q1": {
                "questionId": "conv-1-q1",
                "question": Q,
                "groundTruth": KEY,
                "questionType": "single-hop",
                "phases": PHASES,
            }
        },
    },
    "EverMemOS evaluation": {
        "total_questions": 1,
        "accuracy": 1.0,
        "metadata": {"model": "gpt-4o-mini"},
        "detailed_results": {
            "locomo_exp_user_0": [
                {
                    "question_id": "locomo_0_qa1",
                    "question": Q,
                    "golden_answer": KEY,
                    "generated_answer": A,
                    "llm_judgments": {"judgment_1": True, "judgment_2": False, "judgment_3": True},
                    "category": 4,
                }
            ]
        },
    },
    "Hindsight benchmarks": {
        "overall_accuracy": 100.0,
        "model_config": {"judge": {"model": "gpt-oss"}, "answer_generation": {"model": "gemini"}},
        "item_results": [
            {
                "item_id": "conv-1",
                "metrics": {
                    "detailed_results": [
                        {
                            "question": Q,
                            "correct_answer": KEY,
                            "predicted_answer": A,
                            "category": 4,
                            "is_correct": True,
                            "correctness_reasoning": "same",
                            "retrieved_memories": [{"id": "1", "text": "Ann made a bowl", "fact_type": "world"}],
                        }
                    ]
                },
            }
        ],
    },
    "MemEval": {
        "system": "simplemem",
        "benchmark": "LoCoMo",
        "config": {"llm_model": "gpt-4.1-mini", "judge_model": "gpt-5.2"},
        "results": [
            {
                "sample_id": "conv-1",
                "question": Q,
                "ground_truth": KEY,
                "predicted": A,
                "category": 4,
                "category_name": "single-hop",
                "f1": 0.8,
                "judge_accurate": 1,
            }
        ],
    },
    "inspect_ai": {
        "version": 2,
        "eval": {"task": "locomo", "model": "openai/gpt-4o", "scorers": [{"name": "model_graded_qa"}]},
        "samples": [
            {
                "id": "conv-1_q1",
                "epoch": 1,
                "input": Q,
                "target": KEY,
                "metadata": {"context": "Ann made a bowl"},
                "output": {"choices": [{"message": {"role": "assistant", "content": A}}], "completion": A},
                "scores": {"model_graded_qa": {"value": "C", "explanation": "same"}},
            }
        ],
    },
    "promptfoo": {
        "evalId": "e",
        "results": {
            "version": 3,
            "results": [
                {
                    "vars": {"question": Q, "expected": KEY, "context": "Ann made a bowl"},
                    "response": {"output": A},
                    "success": True,
                    "provider": {"id": "openai:gpt-4o", "label": ""},
                    "gradingResult": {"pass": True, "reason": "same"},
                    "latencyMs": 30,
                }
            ],
        },
    },
    "LoCoMo's own evaluation": [
        {
            "sample_id": "conv-1",
            "qa": [
                {
                    "question": Q,
                    "answer": KEY,
                    "category": 4,
                    "evidence": ["D1:3"],
                    "gpt-4_prediction": A,
                    "gpt-4_f1": 0.8,
                }
            ],
        }
    ],
}


def read(path: Path, value: Any) -> PublishedRun:
    path.write_text(json.dumps(value))
    (run,) = read_source(path)
    return run


@pytest.mark.parametrize("title", SHAPES)
def test_a_file_of_each_harness_is_read(tmp_path: Path, title: str) -> None:
    run = read(tmp_path / "r.json", SHAPES[title])
    (answer,) = run.answers
    assert (answer.question, answer.answer, answer.expected) == (Q, A, KEY)
    assert answer.judgement == (None if title.startswith("LoCoMo") else "right")
    assert not run.problems
    has_context = title not in ("EverMemOS evaluation", "MemEval", "LoCoMo's own evaluation")
    assert bool(answer.memories) is has_context
    if answer.memories:
        assert "Ann made a bowl" in answer.memories[0]


def test_a_memory_keeps_its_date(tmp_path: Path) -> None:
    run = read(tmp_path / "r.json", SHAPES["mem0's evaluation of 2025"])
    (answer,) = run.answers
    assert answer.memories == ("4 May 2023: Ann made a bowl",)
    assert (answer.sample, answer.recall_ms, answer.answer_ms) == ("0", 20, 30)


def test_one_file_with_several_cutoffs_is_several_runs(tmp_path: Path) -> None:
    cut = {"judgment": "CORRECT", "generated_answer": A, "reason": "same"}
    document = {
        "metadata": {"project_name": "mine", "answerer_model": "gpt-5", "judge_model": "gpt-5"},
        "evaluations": [
            {
                "question_id": "conv0_q1",
                "conversation_idx": 0,
                "category_name": "single-hop",
                "question": Q,
                "ground_truth_answer": KEY,
                "retrieval": {"search_results": [{"memory": "one"}, {"memory": "two"}], "search_latency_ms": 5},
                "cutoff_results": {
                    "top_1": cut | {"memories_evaluated": 1},
                    "top_2": cut | {"memories_evaluated": 2, "judgment": "WRONG"},
                },
            }
        ],
    }
    path = tmp_path / "r.json"
    path.write_text(json.dumps(document))
    runs = read_source(path)
    assert [(run.system, run.answers[0].judgement, run.answers[0].memories) for run in runs] == [
        ("mine top_1", "right", ("one",)),
        ("mine top_2", "wrong", ("one", "two")),
    ]


def test_hypotheses_of_longmemeval_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "hyp.jsonl"
    lines = [{"question_id": "e1", "hypothesis": A}, {"question_id": "e2", "hypothesis": "No."}]
    path.write_text("\n".join(map(json.dumps, lines)) + '\n{"question_id": "e3", "hyp')
    (run,) = read_source(path)
    assert [(each.question_id, each.answer) for each in run.answers] == [("e1", A), ("e2", "No.")]
    assert "line 3" in run.problems[0]
    judged = tmp_path / "hyp.jsonl.eval-results-gpt-4o"
    judged.write_text(json.dumps(lines[0] | {"autoeval_label": {"model": "gpt-4o", "label": True}}) + "\n")
    (run,) = read_source(judged)
    assert run.answers[0].judgement == "right"


@pytest.mark.parametrize(
    ("judged", "judge"),
    [
        ({"is_correct": "False"}, "an unnamed judge"),
        ({"correct": "no"}, "an unnamed judge"),
        ({"verdict": "INCORRECT"}, "an unnamed judge"),
        ({"judge": "incorrect"}, "an unnamed judge"),
        ({"judge": {"label": "incorrect", "score": 0, "model": "gpt-4o"}}, "gpt-4o"),
    ],
)
@pytest.mark.parametrize("named", [{"question_id": "e1"}, {}], ids=["longmemeval", "unnamed"])
def test_a_judgement_under_a_common_name_counts_in_hypotheses_too(
    tmp_path: Path, named: dict[str, str], judged: dict[str, Any], judge: str
) -> None:
    path = tmp_path / "hyp.json"
    path.write_text(json.dumps([named | {"question": Q, "hypothesis": "A jug.", "ground_truth": KEY} | judged]))
    (run,) = read_source(path)
    assert (run.answers[0].judgement, run.answers[0].expected, run.judge) == ("wrong", KEY, judge)
    assert not run.unused


@pytest.mark.parametrize("judge", [{"model": "gpt-4o", "temperature": 0}, {"name": "gpt-4o", "refused": False}])
def test_the_settings_of_a_judge_are_no_judgement(tmp_path: Path, judge: dict[str, Any]) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps([{"question": Q, "answer": A, "ground_truth": KEY, "judge": judge}]))
    (run,) = read_source(path)
    assert run.answers[0].judgement is None
    assert not any("judgement" in note for note in run.notes)


def test_a_text_that_is_correct_may_be_the_key(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps([{"question_id": "e1", "question": Q, "hypothesis": "No.", "correct": "no"}]))
    (run,) = read_source(path)
    assert run.answers[0].judgement is None


def test_files_of_one_folder_that_complete_each_other_are_one_run(tmp_path: Path) -> None:
    rows = [
        {
            "question_id": "locomo_0_qa1",
            "question": Q,
            "answer": A,
            "golden_answer": KEY,
            "conversation_id": "locomo_0",
            "formatted_context": "Ann made a bowl",
        }
    ]
    (tmp_path / "answer_results.json").write_text(json.dumps(rows))
    (tmp_path / "eval_results.json").write_text(json.dumps(SHAPES["EverMemOS evaluation"]))
    (tmp_path / "config.json").write_text("{}")
    (run,) = read_source(tmp_path)
    (answer,) = run.answers
    assert (answer.memories, answer.judgement) == (("Ann made a bowl",), "right")


def test_a_packed_log_of_inspect_is_read(tmp_path: Path) -> None:
    log = SHAPES["inspect_ai"]
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({key: log[key] for key in ("version", "eval")}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(log["samples"][0]))
        archive.writestr("summaries.json", "[]")
    (run,) = read_source(path)
    assert (run.model, run.judge, run.answers[0].judgement) == ("openai/gpt-4o", "model_graded_qa", "right")


@pytest.mark.parametrize("title", SHAPES)
def test_a_file_of_each_harness_may_end_anywhere(tmp_path: Path, title: str) -> None:
    """Cut off at any place, it is read as far as it goes, or refused with a reason; never with a traceback."""
    from memreplay.errors import DatasetError

    whole = json.dumps(SHAPES[title]).encode()
    path = tmp_path / "r.json"
    for end in range(1, len(whole), 7):
        path.write_bytes(whole[:end])
        try:
            assert all(run.problems for run in read_source(path))
        except DatasetError as error:
            assert "r.json" in str(error)


def test_each_model_in_a_file_of_locomo_is_a_run_with_its_own_answers(tmp_path: Path) -> None:
    row = {
        "question": Q,
        "answer": KEY,
        "category": 4,
        "gpt-4_prediction": A,
        "gpt-4_f1": 0.8,
        "gpt-4_dialog_top_5_prediction": "A cup.",
        "gpt-4_dialog_top_5_prediction_context": ["D1:3", "D1:1"],
        "gpt-4_observation_top_5_prediction": "A jug.",
        "gpt-4_observation_top_5_prediction_context": ["D1:3"],
    }
    only_one = {"question": "Where?", "answer": "Here.", "category": 4, "gpt-4_prediction": "There."}
    path = tmp_path / "locomo10_qa.json"
    path.write_text(json.dumps([{"sample_id": "conv-1", "qa": [row, only_one]}]))
    plain, dialog, observation = read_source(path)
    assert [run.system for run in (plain, dialog, observation)] == [
        "gpt-4",
        "gpt-4_dialog_top_5",
        "gpt-4_observation_top_5",
    ]
    assert [answer.answer for answer in plain.answers] == [A, "There."]
    assert (dialog.answers[0].answer, dialog.answers[0].turn_ids) == ("A cup.", ("D1:3", "D1:1"))
    assert dialog.notes == ("1 row without an answer of it",)
    assert observation.answers[0].turn_ids is None and "observations" in observation.notes[1]


def test_each_provider_and_prompt_of_promptfoo_is_a_run(tmp_path: Path) -> None:
    def row(provider: str, prompt: str, output: str) -> dict[str, Any]:
        return {
            "vars": {"question": Q, "expected": KEY},
            "provider": {"id": provider, "label": ""},
            "prompt": {"raw": Q, "label": prompt},
            "response": {"output": output},
            "success": output == A,
        }

    rows = [row("one", "short", A), row("two", "short", "A cup."), row("one", "long", "A jug.")]
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": rows}}))
    runs = read_source(path)
    assert [(run.system, run.model, run.answers[0].answer) for run in runs] == [
        ("one short", "one", A),
        ("two short", "two", "A cup."),
        ("one long", "one", "A jug."),
    ]


def test_a_question_of_inspect_may_be_messages_with_parts_and_attachments(tmp_path: Path) -> None:
    log = json.loads(json.dumps(SHAPES["inspect_ai"]))
    del log["eval"]["scorers"]
    log["results"] = {"scores": [{"name": "match"}, {"name": "includes"}]}
    (sample,) = log["samples"]
    sample["input"] = [
        {"role": "system", "content": "Answer briefly."},
        {"role": "user", "content": [{"type": "text", "text": "attachment://a1"}, {"type": "image", "image": "x"}]},
    ]
    sample["attachments"] = {"a1": Q}
    del sample["output"]["completion"]
    sample["output"]["choices"][0]["message"]["content"] = [
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "text", "text": A},
    ]
    run = read(tmp_path / "log.json", log)
    assert (run.answers[0].question, run.answers[0].answer, run.judge) == (Q, A, "match, includes")


def test_a_log_without_answers_says_what_it_looks_like(tmp_path: Path) -> None:
    from memreplay.errors import DatasetError

    path = tmp_path / "log.json"
    path.write_text(json.dumps({"eval": {"task": "t"}, "status": "error"}))
    with pytest.raises(DatasetError, match="looks like inspect_ai, and has no row with an answer"):
        read_source(path)


def test_multiple_choice_results_of_evermemos_are_a_flat_list(tmp_path: Path) -> None:
    row = {
        "question_id": "q1",
        "question": Q,
        "golden_answer": "(a)",
        "generated_answer": "(a)",
        "is_correct": True,
    }
    document = {"accuracy": 1.0, "detailed_results": [row], "metadata": {"evaluator": "exact_match"}}
    run = read(tmp_path / "eval_results.json", document)
    assert (run.answers[0].judgement, run.judge) == ("right", "exact_match")


def test_an_answer_that_hindsight_does_not_count_is_an_error(tmp_path: Path) -> None:
    found = json.loads(json.dumps(SHAPES["Hindsight benchmarks"]))
    found["item_results"][0]["metrics"]["detailed_results"][0] |= {"is_invalid": True, "is_correct": False}
    run = read(tmp_path / "r.json", found)
    assert [(each.answer, each.error) for each in run.answers] == [
        (None, "Hindsight benchmarks does not count this answer")
    ]


def test_a_memory_with_chunks_gives_all_its_texts(tmp_path: Path) -> None:
    document = json.loads(json.dumps(SHAPES["supermemory's memorybench"]))
    document["questions"]["conv-1-q1"]["phases"]["search"]["results"] = [
        {"memory": "Ann made a bowl", "chunks": [{"content": "Ann: A small blue bowl."}, {"content": "Ben: Nice!"}]}
    ]
    (answer,) = read(tmp_path / "r.json", document).answers
    assert answer.memories == ("Ann made a bowl\nAnn: A small blue bowl.\nBen: Nice!",)


def test_fields_that_nothing_is_made_of_are_named_and_counted(tmp_path: Path) -> None:
    run = read(tmp_path / "r.json", SHAPES["MemEval"])
    assert run.unused == {"f1": 1}
    assert run.remarks == ("fields of its rows that nothing is made of: f1 (1)",)


def test_results_of_no_known_harness_are_read_by_the_names_of_their_fields(tmp_path: Path) -> None:
    rows = [
        {
            "conv_index": 0,
            "question": Q,
            "ground_truth": KEY,
            "prediction": A,
            "category_name": "single-hop",
            "retrieved_contents": ["Ann made a bowl"],
            "llm_correct": True,
            "bleu1": 0.5,
        }
    ]
    run = read(tmp_path / "r.json", {"aggregate": {}, "per_question": rows})
    (answer,) = run.answers
    assert (answer.question, answer.answer, answer.expected, answer.judgement) == (Q, A, KEY, "right")
    assert (answer.sample, answer.memories, run.judge) == ("0", ("Ann made a bowl",), "an unnamed judge")
    assert "answer = prediction, expected = ground_truth" in run.remarks[0]
    assert run.unused == {"bleu1": 1}


def test_a_dataset_is_not_taken_for_results(tmp_path: Path) -> None:
    from memreplay.errors import DatasetError

    path = tmp_path / "data.json"
    path.write_text(json.dumps([{"question_id": "q1", "question": Q, "answer": KEY, "question_type": "x"}]))
    with pytest.raises(DatasetError, match="has no known format"):
        read_source(path)


def test_files_of_a_folder_that_have_no_answers_are_named(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(SHAPES["MemEval"]))
    (tmp_path / "config.json").write_text("{}")
    (run,) = read_source(tmp_path)
    assert run.notes == ("1 file without answers: config.json",)
