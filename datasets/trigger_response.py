"""A standing instruction: whenever something happens, say a sentence. Then it happens several times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memreplay.goodai.evaluation import rouge_l
from memreplay.goodai.interface import DatasetInterface, TestExample

HABITS = (
    ("mention that it is raining", "The boots are by the door", "It is raining again outside."),
    ("complain about noise", "The library opens at nine", "The drilling next door is so loud!"),
    ("say that I have lost my keys", "Look in the blue bowl first", "I cannot find my keys anywhere."),
    ("tell you that I am hungry", "There is soup in the fridge", "I am so hungry right now."),
    ("speak of a deadline", "One page at a time gets it done", "The deadline is tomorrow already."),
    ("greet you in French", "The train to Lyon leaves at noon", "Bonjour, mon ami!"),
    ("yawn", "Tea is better than coffee after six", "Yaaawn..."),
)


@dataclass
class TriggerResponseDataset(DatasetInterface):
    """One point for each response that contains the sentence, verbatim or nearly.

    Nearly means a ROUGE-L above ``rouge_score_threshold`` between the sentence and the response or a part of it.
    """

    name: str = "Trigger Response"
    description: str = "Tell the agent what to say whenever something happens, then let it happen."
    reset_message: str = "You no longer need to say a certain sentence whenever I do something."
    trigger_activations: int = 3
    rouge_score_threshold: float = 0.75

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate tests with one habit each; habits repeat only after all were used."""
        order = self.random.sample(HABITS, len(HABITS))
        return [self._example(*order[place % len(order)]) for place in range(num_examples)]

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: list[str]
    ) -> tuple[int, int, list[str]]:
        """Score one point per response."""
        found = [
            self._has(response, sentence) for response, sentence in zip(responses, expected_answers, strict=False)
        ]
        reasons = [
            f"{sentence!r} is {'' if has else 'not '}in the response."
            for has, sentence in zip(found, expected_answers, strict=False)
        ]
        return sum(found), len(expected_answers), reasons

    def _has(self, response: str, sentence: str) -> bool:
        return sentence in response or any(
            rouge_l(sentence, piece) > self.rouge_score_threshold for piece in _pieces(response, sentence)
        )

    def _example(self, habit: str, sentence: str, trigger: str) -> TestExample:
        return TestExample(
            dataset_generator=self,
            script=[f"Whenever I {habit}, say: '{sentence}'", *[trigger] * self.trigger_activations],
            is_question=[False] + [True] * self.trigger_activations,
            expected_responses=[sentence] * self.trigger_activations,
        )


def _pieces(response: str, sentence: str) -> Iterator[str]:
    """The response, and all of its parts that are about as long as the sentence."""
    yield response
    words, usual = response.split(), len(sentence.split())
    for length in range(max(usual - usual // 4, 1), usual + usual // 4 + 1):
        for start in range(len(words) - length + 1):
            yield " ".join(words[start : start + length])
