"""Python files as datasets."""

from __future__ import annotations

import pickle
import sys
import traceback

import pytest

from memreplay.errors import DatasetError, UsageError
from memreplay.goodai.sources import (
    DEFAULT_MEMORY_SPAN,
    create_dataset,
    is_dataset_file,
    load_dataset_class,
    make_tests,
    shipped_dataset,
)

HEAD = """
from dataclasses import dataclass
from memreplay.goodai.interface import DatasetInterface, TestExample
"""
BODY = """
@dataclass
class {name}(DatasetInterface):
    name: str = "{name}"
    description: str = "d"
    def generate_examples(self, num_examples):
        script = [WORD, "What?"]
        return [TestExample(dataset_generator=self, script=script, is_question=[False, True])] * num_examples
    def evaluate_correct(self, questions, responses, expected_answers):
        return 0, 1, []
"""


def written(folder, name, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("line", ["from .words import WORD", "from . import words; WORD = words.WORD"])
def test_a_dataset_imports_its_siblings(tmp_path, line):
    written(tmp_path, "words.py", "WORD = 'sibling'")
    path = written(tmp_path, "mine.py", HEAD + line + BODY.format(name="Mine"))

    (test,) = create_dataset(load_dataset_class(f"{path}:Mine")).generate_examples(1)

    assert test.script[0] == "sibling"
    assert "words" not in sys.modules and str(tmp_path) not in sys.path


def test_a_plain_import_of_a_sibling_is_answered_with_the_import_that_works(tmp_path):
    written(tmp_path, "words.py", "WORD = 'sibling'")
    path = written(tmp_path, "mine.py", HEAD + "import words\nWORD = words.WORD" + BODY.format(name="Mine"))

    with pytest.raises(UsageError, match=r"words\.py lies beside it; write: from \. import words"):
        load_dataset_class(str(path))


def test_a_file_is_loaded_again_after_it_failed(tmp_path):
    path = written(tmp_path, "mine.py", "1 / 0")
    with pytest.raises(UsageError):
        load_dataset_class(str(path))
    written(tmp_path, "mine.py", HEAD + "WORD = 'mended'" + BODY.format(name="Mine"))

    assert create_dataset(load_dataset_class(str(path))).generate_examples(1)[0].script[0] == "mended"


def test_a_package_of_the_same_name_is_not_executed(tmp_path):
    written(tmp_path / "mine", "__init__.py", "raise SystemError")
    path = written(tmp_path, "mine.py", HEAD + "WORD = 'w'" + BODY.format(name="Mine"))

    assert load_dataset_class(str(path)).__name__ == "Mine"


def test_a_sibling_can_be_imported_when_a_method_runs(tmp_path):
    written(tmp_path, "words.py", "WORD = 'late'")
    body = BODY.format(name="Mine").replace("        script =", "        from .words import WORD\n        script =")
    dataset = create_dataset(load_dataset_class(str(written(tmp_path, "mine.py", HEAD + body))))

    assert dataset.generate_examples(1)[0].script[0] == "late"


def test_siblings_may_import_each_other_in_a_circle(tmp_path):
    written(
        tmp_path,
        "words.py",
        "import json\nfrom . import more as others\ndef word():\n    return json.loads(others.TEXT)",
    )
    written(tmp_path, "more.py", "from . import words\nTEXT = '\"both\"'\ndef again():\n    return words.word()")
    line = "from .more import again\nWORD = again()"
    path = written(tmp_path, "mine.py", HEAD + line + BODY.format(name="Mine"))

    (test,) = create_dataset(load_dataset_class(str(path))).generate_examples(1)

    assert test.script[0] == "both"


@pytest.mark.parametrize("package", ["yaml", "datasets", "memreplay"])
def test_a_package_in_the_folder_shadows_no_installed_one(tmp_path, package, monkeypatch):
    installed = tmp_path / "installed"
    if package == "datasets":
        written(installed / package, "__init__.py", "")
        monkeypatch.syspath_prepend(installed)
    written(tmp_path / "mine" / package, "__init__.py", "raise SystemError")
    line = f"import {package}\nWORD = {package}.__file__"
    path = written(tmp_path / "mine", "mine.py", HEAD + line + BODY.format(name="Mine"))

    (test,) = create_dataset(load_dataset_class(str(path))).generate_examples(1)

    assert not test.script[0].startswith(str(tmp_path / "mine"))
    sys.modules.pop("datasets", None)


def test_a_traceback_shows_the_line_of_the_file(tmp_path):
    written(tmp_path, "words.py", "WORD = 'w'")
    path = written(tmp_path, "mine.py", '"""Doc."""\n\nfrom . import words\n\n1 / 0')

    with pytest.raises(UsageError) as raised:
        load_dataset_class(str(path))

    assert traceback.extract_tb(raised.value.__cause__.__traceback__)[-1].lineno == 5


def test_files_of_the_same_name_in_two_folders_do_not_meet(tmp_path):
    words = []
    for folder in ("one", "two"):
        written(tmp_path / folder, "words.py", f"WORD = {folder!r}")
        path = written(tmp_path / folder, "mine.py", HEAD + "from .words import WORD" + BODY.format(name="Mine"))
        words.append(create_dataset(load_dataset_class(str(path))).generate_examples(1)[0].script[0])

    assert words == ["one", "two"]


def test_a_sibling_does_not_replace_the_standard_library(tmp_path):
    written(tmp_path, "json.py", "raise SystemError")
    path = written(tmp_path, "mine.py", HEAD + "import json\nWORD = json.dumps(1)" + BODY.format(name="Mine"))

    assert load_dataset_class(str(path)).__name__ == "Mine"


def test_a_dataset_and_what_it_holds_can_be_pickled(tmp_path):
    path = written(tmp_path, "mine.py", HEAD + "WORD = 'w'" + BODY.format(name="Mine"))
    dataset = create_dataset(load_dataset_class(str(path)), seed=7)

    again = pickle.loads(pickle.dumps(dataset))

    assert (type(again), again.seed) == (type(dataset), 7)


def test_only_the_named_file_is_executed(tmp_path):
    path = written(tmp_path, "mine.py", HEAD + "WORD = 'w'" + BODY.format(name="Mine"))
    written(tmp_path, "other.py", "from pathlib import Path\n(Path(__file__).parent / 'executed').touch()")

    load_dataset_class(str(path))

    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("named", ["mine.py", "mine.py:Mine"])
def test_a_class_with_only_a_callback_gets_an_error_that_names_what_is_missing(tmp_path, named):
    body = BODY.format(name="Mine").replace("evaluate_correct", "continual_evaluation_callback")
    written(tmp_path, "mine.py", HEAD + "WORD = 'w'" + body)

    with pytest.raises(UsageError, match=r"Mine does not define evaluate_correct; .*callback"):
        load_dataset_class(f"{tmp_path}/{named}")


def test_the_class_may_be_left_out_where_there_is_one(tmp_path):
    one = written(tmp_path, "one.py", HEAD + "WORD = 'w'" + BODY.format(name="A"))
    two = written(tmp_path, "two.py", HEAD + "WORD = 'w'" + BODY.format(name="A") + BODY.format(name="B"))

    assert load_dataset_class(str(one)).__name__ == "A"
    with pytest.raises(UsageError, match="A, B"):
        load_dataset_class(str(two))


@pytest.mark.parametrize(
    ("text", "named", "said"),
    [
        (None, "mine.py", "no such file"),
        ("WORD = 1", "mine.py", "it has none"),
        ("WORD = 1", "mine.py:Mine", "no dataset class Mine"),
        ("def (", "mine.py", "SyntaxError"),
        ("import nothing_of_this_name", "mine.py", "nothing_of_this_name"),
        ("1 / 0", "mine.py", "division by zero"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(tmp_path, text, named, said):
    if text is not None:
        written(tmp_path, "mine.py", text)

    with pytest.raises(UsageError, match=said):
        load_dataset_class(f"{tmp_path}/{named}")


def test_a_class_that_is_not_decorated_keeps_what_its_body_sets(tmp_path):
    body = BODY.replace("@dataclass", "").replace(": str", "").format(name="Plain")
    path = written(tmp_path, "mine.py", HEAD + "WORD = 'w'" + body)

    dataset = create_dataset(load_dataset_class(str(path)), seed=3)

    assert (dataset.name, dataset.seed, dataset.memory_span) == ("Plain", 3, DEFAULT_MEMORY_SPAN)


def test_a_dataset_that_cannot_be_made_is_refused_in_a_sentence(tmp_path):
    body = BODY.format(name="Mine") + "    def __post_init__(self):\n        raise ValueError('no luck')\n"
    path = written(tmp_path, "mine.py", HEAD + "WORD = 'w'" + body)

    with pytest.raises(UsageError, match="no luck"):
        create_dataset(load_dataset_class(str(path)))


@pytest.mark.parametrize("folder", ["data", "data/Mine"])
def test_a_dataset_reads_data_that_lies_beside_it(tmp_path, folder):
    written(tmp_path / folder, "words.json", '{"word": "read"}')
    path = written(tmp_path, "mine.py", HEAD + "WORD = 'w'" + BODY.format(name="Mine"))
    dataset = create_dataset(load_dataset_class(str(path)))

    assert dataset.load_json("words.json") == {"word": "read"}


@pytest.mark.parametrize("text", [None, "{"])
def test_data_that_cannot_be_read_is_refused_with_its_path(tmp_path, text):
    path = written(tmp_path, "mine.py", HEAD + "WORD = 'w'" + BODY.format(name="Mine"))
    if text is not None:
        written(tmp_path / "data", "words.json", text)

    with pytest.raises(DatasetError, match=r"words\.json"):
        create_dataset(load_dataset_class(str(path))).load_json("words.json")


def test_tests_that_cannot_be_made_are_refused_in_a_sentence():
    dataset = create_dataset(shipped_dataset("name_list"), name_changes=10_000)

    with pytest.raises(UsageError, match="NameList cannot be created"):
        make_tests(dataset, 1)


def test_a_python_dataset_is_recognised_by_the_form_of_its_name():
    assert is_dataset_file("a/b.py") and is_dataset_file("a/b.py:C")
    assert not is_dataset_file("a/b.json") and not is_dataset_file("identity-01")


def test_an_unknown_dataset_has_no_class():
    assert shipped_dataset("ChapterBreak") is None
