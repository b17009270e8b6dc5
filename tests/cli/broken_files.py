"""What is wrong with each of the broken files: where, and words that the sentence holds."""

from __future__ import annotations

BROKEN: dict[str, list[tuple[str, str, str]]] = {
    "answer_at_another_location": [("tide-01.json", "/recallQuestions/3/infoLocation", 'is "recent"')],
    "answer_is_a_number": [("tide-01.json", "/recallQuestions/4/expectedAnswer", "is 241")],
    "answer_missing": [("tide-01.json", "/recallQuestions/1/expectedAnswer", "is missing")],
    "answer_not_in_the_conversation": [
        (
            "tide-01.json",
            "/recallQuestions/4/expectedAnswer",
            'is "251 pounds", which lacks the expected entity "241"',
        ),
        (
            "tide-01.json",
            "/recallQuestions/4/expectedAnswer",
            'is "251 pounds", which does not occur in the evidence',
        ),
    ],
    "answer_part_of_a_number": [
        (
            "tide-01.json",
            "/recallQuestions/1/expectedAnswer",
            'is "140 kilos", which does not occur in the evidence',
        ),
        ("tide-01.json", "/recallQuestions/1/expectedEntities/0", 'is "140", which does not occur in the evidence'),
    ],
    "answer_too_long": [("tide-01.json", "/recallQuestions/2/expectedAnswer", "is 10 words long")],
    "assistant_first": [("tide-01.json", "/turns/0/role", 'is "assistant"')],
    "content_empty": [("tide-01.json", "/turns/3/content", 'is ""')],
    "content_missing": [("tide-01.json", "/turns/2/content", "is missing")],
    "edge_case_with_a_wrong_answer": [
        (
            "edge/edge-tower.json",
            "/recallQuestions/0/expectedAnswer",
            'is "Henrik", which lacks the expected entity "Henrike Aldenhoven"',
        ),
        (
            "edge/edge-tower.json",
            "/recallQuestions/0/expectedAnswer",
            'is "Henrik", which does not occur in the evidence',
        ),
    ],
    "entities_are_a_text": [("tide-01.json", "/recallQuestions/0/expectedEntities", 'is "Henrike"')],
    "entity_not_in_the_evidence": [
        (
            "tide-01.json",
            "/recallQuestions/3/expectedAnswer",
            'is "17.5 metres", which lacks the expected entity "Leicester"',
        ),
        (
            "tide-01.json",
            "/recallQuestions/3/expectedEntities/1",
            'is "Leicester", which does not occur in the evidence',
        ),
    ],
    "entity_twice": [("tide-01.json", "/recallQuestions/4/expectedEntities/1", 'is "241" again')],
    "evidence_not_marked": [
        (
            "tide-01.json",
            "/turns/6/metadata",
            'is missing, though the turn contains "17.5 metres", which /recallQuestions/3 asks for',
        )
    ],
    "field_misspelt": [("tide-01.json", "/lang", "is not a field of this format")],
    "field_written_twice": [("tide-01.json", "/language", "occurs twice in its object")],
    "file_cut_short": [("tide-01.json", "/", "is not valid JSON")],
    "file_empty": [("tide-01.json", "/", "is empty")],
    "file_half_a_surrogate_pair": [("tide-01.json", "/", "is not valid JSON")],
    "file_is_a_text": [("tide-01.json", "/", "is of no known format")],
    "file_not_utf8": [("tide-01.json", "/", "is not UTF-8 (byte 249)")],
    "file_of_no_known_format": [("tide-01.json", "/", "is of no known format")],
    "file_trailing_comma": [("tide-01.json", "/", "is not valid JSON")],
    "flag_is_a_text": [("tide-01.json", "/turns/4/metadata/containsKeyInfo", 'is "true"')],
    "id_missing": [("tide-01.json", "/id", "is missing")],
    "id_of_another_file": [("tide-01.json", "/id", 'is "tide-02"')],
    "id_shared": [("b/tide-01.json", "/id", 'is "tide-01"')],
    "id_without_a_number": [("tide.json", "/id", 'is "tide"')],
    "key_info_type_unknown": [("tide-01.json", "/turns/4/metadata/keyInfoType", 'is "date"')],
    "key_turn_without_salience": [("tide-01.json", "/turns/10/metadata/salienceLevel", "is missing")],
    "key_turn_without_type": [("tide-01.json", "/turns/4/metadata/keyInfoType", "is missing")],
    "language_unknown": [("tide-01.json", "/language", 'is "english"')],
    "location_unknown": [("tide-01.json", "/recallQuestions/0/infoLocation", 'is "late"')],
    "locations_unbalanced": [("tide-01.json", "/recallQuestions", "asks of 3 early, 2 middle, 0 recent")],
    "locomo_answer_missing": [("garden.json", "/0/qa/0/answer", "is missing")],
    "locomo_category_unknown": [("garden.json", "/0/qa/1/category", "is 7")],
    "locomo_date_of_another_form": [("garden.json", "/0/conversation/session_1_date_time", 'is "2023-05-08"')],
    "locomo_sample_id_twice": [("garden.json", "/1/sample_id", 'is "garden-1" again')],
    "locomo_speaker_missing": [("garden.json", "/0/conversation/speaker_a", "is missing")],
    "locomo_speaker_unknown": [("garden.json", "/0/conversation/session_2/1/speaker", 'is "Ada"')],
    "locomo_turn_id_twice": [("garden.json", "/0/conversation/session_2/1/dia_id", 'is "D2:1" again')],
    "locomo_without_turns": [("garden.json", "/0/conversation", "has no turns")],
    "longmemeval_answer_missing": [("haystacks.json", "/1/answer", "is missing")],
    "longmemeval_date_of_another_form": [("haystacks.json", "/1/haystack_dates/0", 'is "20 May 2023"')],
    "longmemeval_ids_too_few": [("haystacks.json", "/0/haystack_session_ids", "has 1 entry")],
    "longmemeval_question_date_broken": [("haystacks.json", "/1/question_date", 'is "2023/13/01 (Sun) 10:00"')],
    "longmemeval_question_id_twice": [("haystacks.json", "/1/question_id", 'is "7a_1" again')],
    "longmemeval_role_unknown": [("haystacks.json", "/0/haystack_sessions/1/0/role", 'is "human"')],
    "longmemeval_type_unknown": [("haystacks.json", "/0/question_type", 'is "multi_session"')],
    "mc10_another_haystack": [
        (
            "rows.jsonl",
            "line 2/haystack_sessions",
            "is not the haystack of line 1, which belongs to the same conversation",
        )
    ],
    "mc10_answer_is_another_choice": [("rows.jsonl", "line 2/answer", 'is "2021"')],
    "mc10_array_cut_short": [("rows.json", "/1", "is not valid JSON")],
    "mc10_dates_too_few": [("rows.jsonl", "line 1/haystack_session_datetimes", "has 2 entries")],
    "mc10_index_out_of_range": [("rows.jsonl", "line 2/correct_choice_index", "is 10")],
    "mc10_line_broken": [("rows.jsonl", "line 2", "is not valid JSON")],
    "mc10_nested_too_deeply": [("rows.json", "/", "is nested more than 1,024 deep")],
    "mc10_question_id_twice": [("rows.jsonl", "line 2/question_id", 'is "garden-1_q0" again')],
    "mc10_sessions_miscounted": [("rows.jsonl", "line 2/num_sessions", "is 4")],
    "mc10_too_few_choices": [("rows.jsonl", "line 2/choices", "has 9 options")],
    "mc10_type_unknown": [("rows.jsonl", "line 1/question_type", 'is "cloze"')],
    "metadata_in_snake_case": [
        ("tide-01.json", "/turns/0/metadata/containsKeyInfo", "is missing"),
        ("tide-01.json", "/turns/0/metadata/contains_key_info", "is not a field of this format"),
    ],
    "metadata_on_an_ordinary_turn": [("tide-01.json", "/turns/1/metadata/containsKeyInfo", "is false")],
    "opening_shared": [("tide-02.json", "/turns/0/content", "begins")],
    "question_asked_twice": [
        ("tide-01.json", "/recallQuestions/1/question", "repeats the question of /recallQuestions/0")
    ],
    "question_blank": [("tide-01.json", "/recallQuestions/4/question", "is blank")],
    "question_holds_an_entity": [
        ("tide-01.json", "/recallQuestions/1/expectedEntities/0", 'is "1,140", which occurs in the question')
    ],
    "question_holds_its_answer": [
        ("tide-01.json", "/recallQuestions/2/question", 'contains its answer "lignum vitae"')
    ],
    "question_salience_differs": [("tide-01.json", "/recallQuestions/0/salienceLevel", 'is "low"')],
    "question_salience_missing": [("tide-01.json", "/recallQuestions/2/salienceLevel", "is missing")],
    "questions_missing": [("tide-01.json", "/recallQuestions", "is missing")],
    "questions_too_few": [("tide-01.json", "/recallQuestions", "has 4 entries")],
    "role_unknown": [("tide-01.json", "/turns/5/role", 'is "system"')],
    "roles_do_not_alternate": [("tide-01.json", "/turns/11/role", 'is "user", like the turn before')],
    "salience_unknown": [("tide-01.json", "/turns/4/metadata/salienceLevel", 'is "huge"')],
    "saliences_not_mixed": [("tide-01.json", "/recallQuestions", 'all have salienceLevel "high"')],
    "tag_twice": [("tide-01.json", "/tags/1", 'is "near_number" again')],
    "tag_unknown": [("tide-01.json", "/tags/0", 'is "near_numbers"')],
    "tags_are_a_text": [("tide-01.json", "/tags", 'is "near_number"')],
    "turn_blank": [("tide-01.json", "/turns/9/content", "is blank")],
    "turn_not_an_object": [("tide-01.json", "/turns/3", 'is "hello"')],
    "turns_empty": [("tide-01.json", "/turns", "has 0 entries")],
    "turns_missing": [("tide-01.json", "/turns", "is missing")],
    "turns_too_few": [("tide-01.json", "/turns", "has 10 entries")],
    "turns_too_many": [("tide-01.json", "/turns", "has 22 entries")],
    "wording_shared": [("tide-02.json", "/turns/9/content", "shares 9 words in a row")],
    "words_too_few": [("tide-01.json", "/turns", "holds 356 words")],
}
