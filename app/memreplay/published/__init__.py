"""Results that other harnesses published, question by question: read, joined with the dataset, and explained.

:mod:`.formats` says where question, answer, context and judgement stand in a file, one table a format;
:mod:`.files` reads files and folders by it; :mod:`.importing` joins the answers with the public dataset and writes
an ordinary recording; :mod:`.autopsy` says where the wrong answers of such recordings were lost.
"""
