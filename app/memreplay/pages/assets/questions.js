"use strict";
(() => {
  const SHOWN_AT_ONCE = 100;
  const SIGNS = { correct: "✓", wrong: "✗", unparsed: "✗", refused: "✗", error: "!" };
  const TONES = { correct: "good", wrong: "bad", unparsed: "bad", refused: "bad", error: "warn" };
  const SOURCES = { f: "frame", m: "memory", d: "distilled", e: "evidence" };
  const LINE_SIGNS = { frame: "  ", memory: "│ ", distilled: "◇ ", evidence: "◆ " };
  const FILTERS = ["stage", "backend", "category", "type", "text", "disagree"];

  const $ = (id) => document.getElementById(id);
  let report, shown = SHOWN_AT_ONCE;

  const words = (label) => (label || "").replaceAll("_", " ");
  const nameOf = (answer) => report.backends[answer.b];

  function disagrees(question) {
    const memories = question.answers.filter((each) => each.outcome !== "error" && !report.controls.includes(each.b));
    const outcomes = new Set(memories.map((each) => each.outcome === "correct"));
    return outcomes.size > 1;
  }

  function matches(question, wanted) {
    const { stage, backend, category, type, text, disagree } = wanted;
    if (category && question.category !== category) return false;
    if (type && question.type !== type) return false;
    if (disagree && !disagrees(question)) return false;
    if ((stage || backend) && !question.answers.some((answer) =>
      (!stage || (answer.stage || answer.outcome) === stage) && (!backend || nameOf(answer) === backend))) return false;
    return !text || (question.text + "\n" + question.expected + "\n" + question.id).toLowerCase().includes(text.toLowerCase());
  }

  function wantedFrom(parameters) {
    return Object.fromEntries(FILTERS.map((name) => [name, parameters.get(name === "backend" ? "memory" : name) || ""]));
  }

  function sameQuestion(question, parameters) {
    return question.id === parameters.get("q")
      && (!parameters.has("conversation") || question.conversation === parameters.get("conversation"))
      && (!parameters.has("dataset") || question.dataset === parameters.get("dataset"));
  }

  /** What a link needs to name a question: its id, and where it is from if the id is not unique. */
  function naming(question, backend) {
    const alone = report.counts.get(question.id) === 1;
    return {
      q: question.id,
      conversation: alone ? null : question.conversation,
      dataset: alone ? null : question.dataset,
      backend: backend === undefined ? null : backend,
      repeat: null,
    };
  }

  function marks(question) {
    return element("span", { class: "marks" }, ...question.answers.map((answer) =>
      element("span", { class: TONES[answer.outcome], text: `${SIGNS[answer.outcome]} ${nameOf(answer)}: ${words(answer.stage || answer.outcome)}` })));
  }

  function drawList() {
    const parameters = state(), wanted = wantedFrom(parameters);
    const found = report.questions.filter((question) => matches(question, wanted));
    $("count").textContent = `${found.length.toLocaleString("en")} of ${report.questions.length.toLocaleString("en")} questions`;
    $("list").replaceChildren(...found.slice(0, shown).map((question) => {
      const backend = wanted.backend || undefined;
      const link = stateLink(naming(question, backend), { "aria-current": sameQuestion(question, parameters) && "true" },
        element("span", { class: "dim", text: question.id + "  " }), element("span", { text: question.text }), marks(question));
      return element("li", {}, link);
    }));
    $("more").hidden = found.length <= shown;
    $("more").textContent = `Show ${Math.min(SHOWN_AT_ONCE, found.length - shown)} more`;
  }

  function term(name, value) {
    return value === undefined || value === null || value === "" ? [] : [element("dt", { text: name }), element("dd", { class: "text", text: String(value) })];
  }

  function promptOf(answer, question) {
    if (answer.p === undefined)
      return element("p", { class: "dim", text: question.kind === "test" ? "A test has no single prompt." : "The prompt is not in the file that this report was made from; make it from the recording." });
    const messages = report.prompts[answer.p];
    if (!messages.length) return element("p", { class: "warn", text: "No prompt was sent: memory could not be read." });
    const kinds = [...answer.marks.matchAll(/([a-z])(\d+)/g)].flatMap(([, sign, count]) => Array(Number(count)).fill(SOURCES[sign]));
    const box = element("div", { class: "prompt" });
    let place = 0;
    for (const [role, runs] of messages) {
      box.append(element("h4", { text: `── ${role}` }));
      for (let at = 0; at < runs.length; at += 2)
        for (let number = runs[at]; number < runs[at] + runs[at + 1]; number += 1, place += 1) {
          const source = kinds[place], turns = answer.at[place];
          const whose = turns ? `turn ${turns.join(", ")}  ` : "";
          box.append(element("div", { class: `line ${source}`, text: LINE_SIGNS[source] + whose + report.lines[number] }));
        }
    }
    return box;
  }

  function evidenceOf(question) {
    if (!question.evidence || !question.evidence.length) return element("p", { class: "dim", text: "The dataset names no evidence." });
    const title = question.tempting ? "Tempting turns: the question is about something that was never said" : "Evidence";
    return element("div", {}, element("h4", { text: title }), ...question.evidence.map((turn) =>
      element("p", { class: "text", text: `◆ turn ${turn.id}${turn.date ? ` (${turn.date})` : ""}${turn.text === undefined ? "" : ` ${turn.speaker}: ${turn.text}`}` })));
  }

  function hitsOf(answer) {
    if (!answer.hits.length) return null;
    const heading = ["rank", "store", "score", "turns", "tokens", "in the prompt"];
    return element("details", {}, element("summary", { text: `What memory retrieved (${answer.hits.length})` }),
      element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "What memory retrieved" },
        element("table", {},
          element("thead", {}, element("tr", {}, ...heading.map((text) => element("th", { scope: "col", text })))),
          element("tbody", {}, ...answer.hits.map((hit) => element("tr", {}, ...hit.map((value, column) =>
            element(column ? "td" : "th", { scope: column ? null : "row", text: column === 5 ? (value ? "yes" : "no") : value === null ? "–" : String(value) }))))))));
  }

  function drawDetail() {
    const parameters = state();
    const question = parameters.has("q") ? report.questions.find((each) => sameQuestion(each, parameters)) : undefined;
    if (!question) {
      $("detail").replaceChildren(...(parameters.has("q") ? [element("p", { class: "warn", text: `This report has no question ${parameters.get("q")}.` })] : []));
      return;
    }
    const repeat = Number(parameters.get("repeat") || 0);
    const answer = question.answers.find((each) => nameOf(each) === parameters.get("backend") && (each.repeat || 0) === repeat)
      || question.answers.find((each) => nameOf(each) === parameters.get("backend")) || question.answers[0];
    const tabs = element("ul", { class: "tabs", "aria-label": "Memories" }, ...question.answers.map((each) => {
      const repeated = each.repeat ? ` (repeat ${each.repeat + 1})` : "";
      const target = { ...naming(question, nameOf(each)), repeat: each.repeat || null };
      return element("li", {}, stateLink(target, { "aria-current": each === answer && "true" },
        element("span", { class: TONES[each.outcome], text: `${SIGNS[each.outcome]} ` }), `${nameOf(each)}${repeated}`));
    }));
    const options = question.choices && element("ol", { class: "options", start: "0" }, ...question.choices.map((choice, index) =>
      element("li", { class: index === question.right ? "good" : null, text: `${choice}${index === question.right ? " ✓" : ""}` })));
    const more = {
      category: question.category, type: question.type, position: question.position, salience: question.salience,
      "prompt tokens": answer.tokens, "tokens cut": answer.cut_tokens, "cost, US dollars": answer.cost,
      "model, ms": answer.ms, "memory, ms": answer.recall_ms, "decided by": words(answer.decided),
    };
    const permanent = { ...naming(question, nameOf(answer)), repeat: answer.repeat || null };
    $("detail").replaceChildren(
      element("h3", {}, stateLink(permanent, { title: "permanent link" }, question.id), element("span", { class: "dim", text: `  ${question.dataset} · ${question.conversation}` })),
      element("p", { class: "text", text: question.text }),
      ...(options ? [options] : []),
      tabs,
      element("p", { class: TONES[answer.outcome], text: `${SIGNS[answer.outcome]} ${words(answer.outcome)}${answer.stage ? `: ${words(answer.stage)}` : ""}` }),
      ...(answer.detail ? [element("p", { class: "text", text: answer.detail })] : []),
      element("dl", {}, ...term("expected", question.expected), ...term("answered", answer.predicted), ...term("reply", answer.reply), ...term("error", answer.error)),
      evidenceOf(question),
      element("h4", { text: "The prompt as sent" }),
      element("p", { class: "dim", text: "◆ evidence, verbatim · ◇ distilled from evidence · │ from memory" }),
      promptOf(answer, question),
      ...[hitsOf(answer)].filter(Boolean),
      element("details", {}, element("summary", { text: "More" }), element("dl", {}, ...Object.entries(more).flatMap(([name, value]) => term(name, value)))),
    );
  }

  function options(select, label, values) {
    select.replaceChildren(element("option", { value: "", text: label }), ...values.map((value) => element("option", { value, text: words(value) })));
    select.parentElement.hidden = values.length < 1;
  }

  function fillFilters() {
    const of = (read) => [...new Set(report.questions.flatMap(read).filter(Boolean))].sort();
    const form = $("filters").elements;
    options(form.stage, "any", of((question) => question.answers.map((answer) => answer.stage || answer.outcome)));
    options(form.backend, "any", []);
    form.backend.append(...report.backends.map((name) => element("option", { value: name, text: name })));
    form.backend.parentElement.hidden = false;
    options(form.category, "any", of((question) => question.category));
    options(form.type, "any", of((question) => question.type));
  }

  function showFilters() {
    const wanted = wantedFrom(state()), form = $("filters").elements;
    for (const name of FILTERS)
      if (name === "disagree") form[name].checked = Boolean(wanted[name]);
      else if (form[name].value !== wanted[name]) form[name].value = wanted[name];
  }

  let drawnFilters = null;
  function draw() {
    const filters = JSON.stringify(wantedFrom(state()));
    if (filters !== drawnFilters) shown = SHOWN_AT_ONCE;
    drawnFilters = filters;
    showFilters();
    drawList();
    drawDetail();
  }

  function fromForm() {
    const form = $("filters").elements;
    const changes = Object.fromEntries(FILTERS.map((name) =>
      [name === "backend" ? "memory" : name, name === "disagree" ? (form[name].checked ? "1" : null) : form[name].value]));
    history.replaceState(null, "", linkTo(changes));
    draw();
  }

  if ($("questions-data")) starting(start);
  async function start() {
    try {
      report = await unpacked("questions-data");
    } catch (error) {
      $("problem").textContent = `The questions cannot be shown: ${error.message}`;
      $("problem").hidden = false;
      return;
    }
    report.counts = new Map();
    for (const { id } of report.questions) report.counts.set(id, (report.counts.get(id) || 0) + 1);
    fillFilters();
    $("explorer").hidden = false;
    draw();
    $("filters").addEventListener("input", fromForm);
    $("filters").addEventListener("submit", (event) => event.preventDefault());
    $("filters").addEventListener("reset", () => setTimeout(fromForm));
    $("more").addEventListener("click", () => { shown += SHOWN_AT_ONCE; drawList(); });
    addEventListener("hashchange", draw);
    if (state().has("q")) $("questions").scrollIntoView();
  }
})();
