"use strict";
(() => {
  const KEYFRAME = 32, MOST_ROWS = 1500, COUNT_MS = 1500;
  const PACE_MS = [0, 1000, 250, 62];
  const PACE_WORDS = ["▶ play", "▶▶ 4×", "▶▶▶ 16×", "⏸ pause"];
  const KEYS = [
    ["space .", "next turn; a number before it repeats"], [",", "previous turn"], ["g G", "first, last; with a number: that turn"],
    ["] [", "next and previous turn with an event"], ["} {", "next and previous session"], ["p x", "play, faster, pause; stop"],
    ["1 … 5", "focus a memory"], ["tab", "next panel"], ["j k", "next and previous line that leads somewhere"],
    ["w enter", "who wrote this? go to the write of the selected line"], ["⌫", "return from a jump"],
    ["d", "diff against the previous turn, a bookmark, another memory, or nothing"], ["v", "next page of panels"],
    ["s", "colour the conversation by significance"], ["/ n N", "search; next and previous match"],
    ["'", "next note of the story"], ["r", "the questions"], ["?", "these keys"],
  ];

  /** The lines of a panel at any position: every 32nd is kept, the others follow by steps. */
  class Track {
    constructor(steps) {
      this.steps = steps;
      this.frames = [];
      let lines = [];
      steps.forEach((step, index) => {
        lines = Track.applied(lines, step);
        if (index % KEYFRAME === 0) this.frames.push(lines);
      });
    }
    static applied(lines, step) {
      if (!step.length) return lines;
      return lines.slice(0, step[0]).concat(step.slice(2), lines.slice(step[0] + step[1]));
    }
    at(index) {
      const frame = Math.floor(index / KEYFRAME);
      let lines = this.frames[frame];
      for (let next = frame * KEYFRAME + 1; next <= index; next += 1) lines = Track.applied(lines, this.steps[next]);
      return lines;
    }
  }

  /** What to keep, take out and put in, as [sign, line]. Texts that are alike count as equal. */
  function difference(before, after, textOf) {
    let start = 0, end = 0;
    while (start < before.length && start < after.length && textOf(before[start]) === textOf(after[start])) start += 1;
    while (end < before.length - start && end < after.length - start
      && textOf(before[before.length - 1 - end]) === textOf(after[after.length - 1 - end])) end += 1;
    const old = before.slice(start, before.length - end), now = after.slice(start, after.length - end);
    const result = after.slice(0, start).map((line) => [" ", line]);
    if (old.length * now.length > 1e6) result.push(...old.map((line) => ["−", line]), ...now.map((line) => ["+", line]));
    else {
      const longest = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
      for (let i = old.length - 1; i >= 0; i -= 1)
        for (let j = now.length - 1; j >= 0; j -= 1)
          longest[i][j] = textOf(old[i]) === textOf(now[j]) ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
      let i = 0, j = 0;
      while (i < old.length || j < now.length)
        if (i < old.length && j < now.length && textOf(old[i]) === textOf(now[j])) { result.push([" ", now[j]]); i += 1; j += 1; }
        else if (j >= now.length || (i < old.length && longest[i + 1][j] >= longest[i][j + 1])) { result.push(["−", old[i]]); i += 1; }
        else { result.push(["+", now[j]]); j += 1; }
    }
    return result.concat(after.slice(after.length - end).map((line) => [" ", line]));
  }

  class Replay {
    constructor(root, data, everywhere) {
      Object.assign(this, { root, data, everywhere, cursor: data.first, page: 0, base: 0, pace: 0, jumps: [], typed: "", typedAt: 0 });
      this.bases = [{ kind: "marked" }, { kind: "previous", words: "since the previous turn" },
        ...data.bookmarks.map((each) => ({ kind: "bookmark", turn: each.turn, words: `since ★ ${each.mark} (turn ${each.turn})` })),
        ...(data.backends.length > 1 ? data.backends.map((name) => ({ kind: "architecture", backend: name, words: `against ${name}` })) : []),
        { kind: "off", words: "off" }];
      for (const panel of data.panels) {
        panel.track = new Track(panel.marked);
        panel.plainTrack = panel.plain ? new Track(panel.plain) : panel.track;
      }
      this.focused = null;
      this.chosen = null;
      this.matches = [];
      this.build();
      this.show();
      this.isOpen = true;
    }

    /* ---- the parts of the screen ---- */

    build() {
      const { data } = this, button = (text, label, act) => {
        const made = element("button", { type: "button", text, "aria-label": label, title: label });
        made.addEventListener("click", () => { act(); this.show(); });
        return made;
      };
      this.playButton = button(PACE_WORDS[0], "play (p)", () => this.play());
      this.slider = element("input", { type: "range", min: data.first, max: data.last, step: 1, "aria-label": "turn" });
      this.slider.addEventListener("input", () => { this.moveTo(Number(this.slider.value)); this.show(); });
      this.output = element("output");
      this.searchBox = element("input", { type: "search", "aria-label": "search (/)", placeholder: "search", size: 12 });
      this.searchBox.addEventListener("keydown", (event) => {
        if (event.key === "Enter") { this.search(this.searchBox.value); this.root.focus(); this.show(); }
        if (event.key === "Escape") this.root.focus();
        event.stopPropagation();
      });
      const controls = element("div", { class: "controls", role: "group", "aria-label": "Controls" },
        element("span", { class: "badge", text: "RECORDED" }), button("|◀", "first turn (g)", () => this.moveTo(data.first)),
        button("◀", "previous turn (,)", () => this.moveTo(this.cursor - 1)), button("▶", "next turn (space)", () => this.moveTo(this.cursor + 1)),
        button("▶|", "last turn (G)", () => this.moveTo(data.last)), this.playButton, this.slider, this.output,
        button("diff", "diff (d)", () => this.nextBase()), button("page", "next page of panels (v)", () => this.nextPage()), this.searchBox);
      this.said = element("p", { class: "said", role: "status" });
      this.now = element("p", { class: "now", hidden: true });
      this.story = element("ol", { class: "story", "aria-label": "Story" }, ...data.bookmarks.map((each) => {
        const link = element("a", { href: linkTo(this.address(each.turn)), text: `turn ${each.turn}: ${each.note || each.mark}` });
        link.addEventListener("click", (event) => { event.preventDefault(); this.jump(each.turn); this.show(); });
        return element("li", {}, link);
      }));
      this.turns = data.turns.map((turn, index) => element("div", { class: "turn" },
        ...(turn.session ? [element("div", { class: "t-title", text: `── ${turn.session}` })] : []),
        element("div", { class: "head" }, `${index + 1} ${turn.label}`, ...(turn.questions ? [element("span", { class: "t-warn", text: `  ◇ ${turn.questions.join(", ")}` })] : [])),
        element("div", { class: "body", text: turn.text })));
      this.turns.forEach((box, index) => box.addEventListener("click", () => { this.moveTo(index + 1); this.show(); }));
      this.talk = element("div", { class: "turns", tabindex: "0", role: "group", "aria-label": "Conversation" }, ...this.turns);
      this.memories = data.backends.map((name) => ({ name, box: element("div", { class: "memory" }) }));
      this.tabs = element("div", { class: "controls", role: "group", "aria-label": "Memories" }, ...this.memories.map((memory, number) =>
        button(`${number + 1} ${memory.name}`, `memory ${memory.name} (${number + 1})`, () => this.focusMemory(number))));
      this.baseWords = element("span", { class: "t-warn" });
      const keys = element("details", {}, element("summary", { text: "Keys" }), element("dl", { class: "keys" },
        ...KEYS.flatMap(([names, words]) => [element("dt", {}, element("kbd", { text: names })), element("dd", { text: words })])));
      this.keys = keys;
      this.root.tabIndex = -1;
      this.root.setAttribute("role", "group");
      this.root.setAttribute("aria-label", `Replay of ${data.conversation}`);
      this.root.append(controls, element("div", { class: "controls" }, this.tabs, this.baseWords), this.said, this.now,
        ...(data.bookmarks.length ? [element("h3", { text: "Story" }), this.story] : []),
        element("div", { class: "stage" }, element("div", { class: "talk" }, element("h3", { text: data.conversation }), this.talk), ...this.memories.map((each) => each.box)), keys);
      this.buildPanels();
      (this.everywhere ? document : this.root).addEventListener("keydown", (event) => this.key(event));
    }

    buildPanels() {
      const page = this.data.pages[this.page];
      this.shown = [];
      for (const memory of this.memories) {
        memory.box.replaceChildren(element("h3", { text: memory.name }));
        for (const panel of this.data.panels.filter((each) => each.backend === memory.name && each.page === page)) {
          const title = element("h4"), note = element("p");
          const rows = element("div", { class: "rows", tabindex: "0", role: "group", "aria-label": `${memory.name}: ${panel.name}`, "data-panel": `${memory.name}/${panel.name}` });
          const shown = { panel, title, note, rows, drawn: "", lines: [] };
          rows.addEventListener("focus", () => { this.focused = shown; this.chosen = null; });
          memory.box.append(element("div", { class: `panel w${Math.min(panel.weight, 6)}` }, title, rows, note));
          this.shown.push(shown);
        }
      }
      this.focused = null;
      this.chosen = null;
    }

    /* ---- drawing ---- */

    address(turn) {
      return { turn: turn === this.data.first ? null : turn, replay: this.everywhere || turn === this.data.first ? null : this.data.conversation };
    }

    show() {
      const { data, cursor } = this, last = data.turns.length;
      this.slider.value = cursor;
      this.slider.setAttribute("aria-valuetext", `turn ${cursor} of ${last}`);
      this.output.textContent = cursor <= last ? `turn ${cursor}/${last}` : "closed";
      this.playButton.textContent = PACE_WORDS[this.pace];
      const words = this.bases[this.base].words;
      this.baseWords.textContent = words ? `± ${words}` : "";
      const here = data.bookmarks.filter((each) => each.turn === cursor);
      this.now.hidden = !here.length;
      this.now.textContent = here.map((each) => `★ ${each.mark}${each.note ? `: ${each.note}` : ""}`).join("\n");
      [...this.story.children].forEach((item, index) =>
        item.firstChild.setAttribute("aria-current", String(data.bookmarks[index].turn === cursor)));
      this.showTurns();
      for (const shown of this.shown) this.showPanel(shown);
      this.memories.forEach((memory, number) => memory.box.classList.toggle("hidden", number !== (this.memory || 0)));
      if (this.isOpen) history.replaceState(null, "", linkTo(this.address(cursor)));
    }

    showTurns() {
      this.turns.forEach((box, index) => {
        const name = ["turn"], turn = this.data.turns[index];
        if (index === this.cursor - 1) name.push("here");
        if (index >= this.cursor) name.push("future");
        if (this.query && turn.text.toLowerCase().includes(this.query)) name.push("match");
        if (this.bySignificance && index < this.cursor) name.push(this.significanceOf(turn.id));
        box.className = name.join(" ").trim();
      });
      this.inView(this.talk, this.turns[Math.max(0, Math.min(this.cursor, this.turns.length) - 1)]);
    }

    significanceOf(turn) {
      const judged = (this.data.significance[turn] || []).filter(([at]) => at <= this.cursor).map(([, kind]) => kind);
      return ["kept", "near", "dropped"].find((kind) => judged.includes(kind)) || "";
    }

    /** Each row as [sign, line]; the sign is "" where the panel marks its changes itself. */
    rowsOf(panel) {
      const base = this.bases[this.base], index = this.cursor - this.data.first;
      if (base.kind === "marked") return panel.track.at(index).map((line) => ["", line]);
      const now = panel.plainTrack.at(index);
      let before = null;
      if (base.kind === "previous") before = index ? panel.plainTrack.at(index - 1) : [];
      if (base.kind === "bookmark") before = panel.plainTrack.at(base.turn - this.data.first);
      if (base.kind === "architecture" && base.backend !== panel.backend) {
        const other = this.data.panels.find((each) => each.backend === base.backend && each.page === panel.page && each.name === panel.name);
        before = other ? other.plainTrack.at(index) : null;
      }
      if (before === null) return now.map((line) => ["", line]);
      const rows = difference(before, now, (line) => this.data.lines[line][0]);
      return this.folded(rows);
    }

    folded(rows) {
      const kept = new Set();
      rows.forEach(([sign], index) => { if (sign !== " ") for (const near of [index - 1, index, index + 1]) kept.add(near); });
      const result = [];
      let hidden = 0;
      rows.forEach((row, index) => {
        if (!kept.has(index)) { hidden += 1; return; }
        if (hidden) result.push(["⋯", hidden]);
        hidden = 0;
        result.push(row);
      });
      if (hidden) result.push(["⋯", hidden]);
      return result;
    }

    showPanel(shown) {
      const { panel, title, note, rows } = shown;
      let head = panel.heads[0];
      for (const each of panel.heads) if (each[0] <= this.cursor) head = each;
      title.textContent = head[1];
      note.textContent = head[2];
      const lines = this.rowsOf(panel);
      const signature = `${lines.map((row) => row.join(":")).join(" ")}|${this.query || ""}`;
      if (signature !== shown.drawn) {
        shown.drawn = signature;
        shown.lines = lines;
        shown.from = Math.max(0, Math.min(lines.length - MOST_ROWS, head[3] - MOST_ROWS / 2));
        const part = lines.slice(shown.from, shown.from + MOST_ROWS);
        const left = lines.length - part.length;
        rows.replaceChildren(...(left ? [element("div", { class: "row t-dim", text: `⋯ ${left} more lines are not drawn` })] : []), ...part.map((row) => this.row(row)));
        shown.offset = left ? 1 : 0;
        this.chosen = this.focused === shown ? null : this.chosen;
        const to = this.bases[this.base].kind === "marked" && head[3] >= 0 ? rows.children[head[3] - shown.from + shown.offset] : rows.firstChild;
        this.inView(rows, to);
      }
      [...rows.children].forEach((row, index) => row.classList.toggle("chosen", this.focused === shown && this.chosen === index));
    }

    row([sign, line]) {
      if (sign === "⋯") return element("div", { class: "row t-dim", text: `  ⋯ ${line} unchanged` });
      const [, most, , ...spans] = this.data.texts[this.data.lines[line][0]];
      const made = element("div", { class: `row${most ? ` m${Math.min(most, 4)}` : ""}` });
      if (sign) made.append(element("span", { class: sign === "+" ? "t-added" : sign === "−" ? "t-removed" : "", text: `${sign} ` }));
      for (let at = 0; at < spans.length; at += 2) made.append(element("span", { class: `t-${this.data.tones[spans[at]]}`, text: spans[at + 1] }));
      if (this.query && made.textContent.toLowerCase().includes(this.query)) made.classList.add("match");
      return made;
    }

    inView(box, child) {
      if (!child) return;
      const top = child.offsetTop - box.offsetTop;
      if (top < box.scrollTop || top + child.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 4);
    }

    /* ---- moving ---- */

    say(text) { this.said.textContent = text; }

    moveTo(turn) {
      this.cursor = Math.max(this.data.first, Math.min(turn, this.data.last));
      this.say("");
    }

    jump(turn, backend, words) {
      this.jumps.push([this.cursor, this.focused && this.focused.panel]);
      this.moveTo(turn);
      if (backend) this.memory = this.data.backends.indexOf(backend);
      this.say(words || "");
    }

    back() {
      const jump = this.jumps.pop();
      if (!jump) { this.say("There is no jump to return from."); return; }
      this.moveTo(jump[0]);
    }

    count() {
      const count = performance.now() - this.typedAt <= COUNT_MS ? Number(this.typed) : 0;
      this.typed = "";
      return count;
    }

    among(places, direction, count) {
      let at = this.cursor;
      for (let step = 0; step < count; step += 1) {
        const next = direction > 0 ? places.find((each) => each > at) : places.filter((each) => each < at).pop();
        if (next === undefined) return direction > 0 ? this.data.last : this.data.first;
        at = next;
      }
      return at;
    }

    play() {
      this.pace = (this.pace + 1) % PACE_MS.length;
      clearTimeout(this.timer);
      const next = () => {
        if (!this.pace) return;
        if (this.cursor >= this.data.last) { this.pace = 0; this.show(); return; }
        this.moveTo(this.cursor + 1);
        this.show();
        this.timer = setTimeout(next, PACE_MS[this.pace]);
      };
      if (this.pace) this.timer = setTimeout(next, PACE_MS[this.pace]);
    }

    stop() { this.pace = 0; clearTimeout(this.timer); }

    nextBase() { this.base = (this.base + 1) % this.bases.length; }

    nextPage() { this.page = (this.page + 1) % this.data.pages.length; this.buildPanels(); }

    focusMemory(number) {
      if (number >= this.memories.length) return;
      this.memory = number;
      this.memories.forEach((memory, each) => memory.box.classList.toggle("hidden", each !== number));
      const first = this.shown.find((shown) => shown.panel.backend === this.memories[number].name);
      if (first) first.rows.focus({ preventScroll: true });
    }

    /* ---- who wrote this ---- */

    originAt(line) {
      const subject = this.data.lines[line][1];
      if (subject < 0) return null;
      let found = null;
      for (const origin of this.data.origins[subject]) if (origin[0] <= this.cursor && (!found || origin[0] >= found[0])) found = origin;
      return found;
    }

    lineOf(shown, place) {
      const row = shown.lines[place - shown.offset + shown.from];
      return row && row[0] !== "⋯" ? row[1] : undefined;
    }

    choose(direction) {
      const shown = this.focused;
      if (!shown) { this.say("Focus a panel (tab or 1 2 3)."); return; }
      const count = shown.rows.children.length;
      let at = this.chosen === null ? (direction > 0 ? -1 : count) : this.chosen;
      for (at += direction; at >= 0 && at < count; at += direction) {
        const line = this.lineOf(shown, at);
        if (line !== undefined && this.originAt(line)) { this.chosen = at; this.inView(shown.rows, shown.rows.children[at]); return; }
      }
    }

    follow() {
      const shown = this.focused;
      if (shown && this.chosen === null) this.choose(1);
      if (!shown || this.chosen === null) { this.say("Focus a panel (tab or 1 2 3) and select a line that something wrote."); return; }
      const origin = this.originAt(this.lineOf(shown, this.chosen));
      if (!origin) this.say("No write of this is recorded up to this position.");
      else if (origin[1] < this.data.first || origin[1] > this.data.last) this.say(`Turn ${origin[1]} is not in this page: ${origin[3]}`);
      else this.jump(origin[1], origin[2], origin[3]);
    }

    /* ---- searching ---- */

    search(text) {
      this.query = text.trim().toLowerCase();
      this.matches = [];
      if (!this.query) return;
      const { data } = this, found = new Map();
      const add = (turn, where) => { if (turn >= data.first && turn <= data.last) found.set(`${turn} ${where}`, [turn, where]); };
      data.turns.forEach((turn, index) => { if (turn.text.toLowerCase().includes(this.query)) add(index + 1, "message"); });
      const holds = data.texts.map((text) => text.slice(3).filter((_, index) => index % 2).join("").toLowerCase().includes(this.query));
      for (const panel of data.panels) {
        const seen = new Set();
        panel.marked.forEach((step, index) => {
          for (const line of step.slice(2)) {
            const text = data.lines[line][0];
            if (holds[text] && !seen.has(text)) { seen.add(text); add(index + data.first, `${panel.backend}: ${panel.name}`); }
          }
        });
      }
      this.matches = [...found.values()].sort((a, b) => a[0] - b[0]);
      this.match = this.matches.findIndex(([turn]) => turn >= this.cursor) - 1;
      if (this.match < -1) this.match = -1;
      if (this.matches.length) this.toMatch(1);
      else this.say(`Nothing holds “${text}”.`);
    }

    toMatch(direction) {
      if (!this.matches.length) { this.say("Search with / first."); return; }
      this.match = (this.match + direction + this.matches.length) % this.matches.length;
      const [turn, where] = this.matches[this.match];
      this.moveTo(turn);
      this.say(`match ${this.match + 1} of ${this.matches.length}: turn ${turn}, ${where}`);
    }

    /* ---- keys ---- */

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target, within = this.root.contains(target);
      if (!within && target.closest && target.closest("input, select, textarea, a, button, summary, #explorer")) return;
      if (within && (target.matches("input") || ([" ", "Enter"].includes(event.key) && target.matches("a, button, summary")))) return;
      const { data } = this, once = () => this.count() || 1;
      if (/^\d$/.test(event.key)) {
        const fresh = performance.now() - this.typedAt > COUNT_MS;
        this.typed = ((fresh ? "" : this.typed) + event.key).slice(-6);
        this.typedAt = performance.now();
        if (this.typed.length === 1 && event.key !== "0") this.focusMemory(Number(event.key) - 1);
        this.show();
        return;
      }
      const acts = {
        " ": () => this.moveTo(this.cursor + once()), ".": () => this.moveTo(this.cursor + once()), ",": () => this.moveTo(this.cursor - once()),
        g: () => this.moveTo(this.count() || data.first), G: () => this.moveTo(this.count() || data.last),
        "]": () => this.moveTo(this.among(data.eventful, 1, once())), "[": () => this.moveTo(this.among(data.eventful, -1, once())),
        "}": () => this.moveTo(this.among(data.sessions, 1, once())), "{": () => this.moveTo(this.among(data.sessions, -1, once())),
        p: () => this.play(), x: () => this.stop(), d: () => this.nextBase(), v: () => this.nextPage(),
        s: () => { this.bySignificance = !this.bySignificance; this.say(this.bySignificance ? "by significance: solid, kept; dashed, dropped near the threshold; dotted, dropped" : ""); },
        j: () => this.choose(1), k: () => this.choose(-1), ArrowDown: () => this.choose(1), ArrowUp: () => this.choose(-1),
        w: () => this.follow(), Enter: () => this.follow(), Backspace: () => this.back(),
        "/": () => { this.searchBox.focus(); this.searchBox.select(); }, n: () => this.toMatch(1), N: () => this.toMatch(-1),
        "'": () => {
          const next = data.bookmarks.find((each) => each.turn > this.cursor) || data.bookmarks[0];
          if (next) this.jump(next.turn); else this.say("This recording has no bookmarks.");
        },
        r: () => { const section = document.getElementById("questions"); if (section) section.scrollIntoView(); },
        "?": () => { this.keys.open = !this.keys.open; if (this.keys.open) this.keys.scrollIntoView(); },
      };
      const act = acts[event.key];
      if (!act) return;
      event.preventDefault();
      act();
      if (event.key !== "/") this.show();
    }
  }

  async function start() {
    const alone = "alone" in document.body.dataset, parameters = state();
    for (const root of document.querySelectorAll("[data-replay]"))
      try {
        const data = await unpacked(root.dataset.replay);
        const named = parameters.has("turn") && (alone || parameters.get("replay") === data.conversation);
        const wanted = named ? Number(parameters.get("turn")) : null;
        const replay = new Replay(root, data, alone);
        const opening = data.bookmarks.length ? data.bookmarks[0].turn : data.first_wrong;
        if ((wanted ?? opening) !== null) { replay.moveTo(wanted ?? opening); replay.show(); }
        if (wanted !== null && !alone) root.scrollIntoView();
        addEventListener("hashchange", () => {
          const now = state();
          if ((alone || now.get("replay") === data.conversation) && now.has("turn") && Number(now.get("turn")) !== replay.cursor) { replay.moveTo(Number(now.get("turn"))); replay.show(); }
        });
      } catch (error) {
        const problem = document.getElementById("replay-problem");
        problem.textContent = `The replay cannot be shown: ${error.message}`;
        problem.hidden = false;
      }
  }
  if (document.querySelector("[data-replay]")) starting(start);
})();
