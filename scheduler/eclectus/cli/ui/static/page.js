// The page of `eclectus ui`: panels, one of which is shown; what is of the cluster is asked for again and again.
//
// All that comes from the cluster is set as text, never as HTML: names and messages are chosen by tenants.

const SECONDS = 5; // between two questions, while the page can be seen
const SECONDS_AFTER_PROBLEM = 15;
const PATIENCE_SECONDS = 60; // that a question waits in all while the scheduler is asked too much
const SAMPLES_MOST = 240; // of a node's speed: twenty minutes
const STAGES_DRAWN = 100;

// -- the secret ---------------------------------------------------------------------------------------

/** The secret of the printed URL. It is kept for this tab, and leaves the address bar and the history. */
function secret() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token") ?? "";
}

const token = secret();

class Problem extends Error {
  constructor(status, message, again) {
    super(message);
    this.status = status;
    this.again = again; // after how many seconds to ask again, where the scheduler is asked too much
  }
}

/** The answer to a question. Throws Problem. */
async function ask(path, query = {}, body = undefined) {
  const headers = { Authorization: `Bearer ${token}` };
  const options = { headers, cache: "no-store" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  let answer;
  try {
    answer = await fetch(`/api/${path}?${new URLSearchParams(query)}`, options);
  } catch {
    throw new Problem(0, "`eclectus ui` does not answer: it was ended, or its machine cannot be reached.");
  }
  const found = await answer.json().catch(() => ({ message: `The answer ${answer.status} cannot be read.` }));
  if (!answer.ok) throw new Problem(answer.status, found.message, found.again);
  return found;
}

/** The same, asked again while the scheduler is asked too much and somebody wants it; `says` is called with each wait. */
async function askPatiently(says, isWanted, ...question) {
  for (let left = PATIENCE_SECONDS; ; ) {
    try {
      return await ask(...question);
    } catch (problem) {
      const { again, message } = problem;
      if (!again || again > left || !isWanted()) throw problem;
      says(`${message.replace(/: ask again.*$/, ".")} Asking again in ${again} s …`);
      await new Promise((over) => setTimeout(over, 1000 * again));
      left -= again;
      if (!isWanted()) throw problem;
    }
  }
}

// -- elements -----------------------------------------------------------------------------------------

const byId = (id) => document.getElementById(id);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((each) => each != null));
  return element;
}

/** An element of HTML; texts among its children become text. */
const el = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

/** An element of SVG. */
const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/** What is named so in a container, by its data-key. */
const keyed = (container, key) => container.querySelector(`[data-key="${CSS.escape(key)}"]`);

/** Replace what is in a container; the focus and what is scrolled sideways stay, where they are still there. */
function replace(container, ...children) {
  const focused = container.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const scrolled = [...container.querySelectorAll("[data-key]")].filter((each) => each.scrollLeft > 0);
  const places = scrolled.map((each) => [each.dataset.key, each.scrollLeft]);
  container.replaceChildren(...children.filter((each) => each != null));
  if (focused !== undefined) keyed(container, focused)?.focus({ preventScroll: true });
  for (const [key, left] of places) keyed(container, key)?.scrollTo({ left, behavior: "instant" });
}

/** A button that looks like a link, in a row. */
const rowButton = (key, text, act) =>
  el("button", { class: "row", type: "button", "data-key": key, onclick: act }, text);

/** A table; of a column: its head, what a row has there, and a class of its cells. */
function table(caption, columns, rows, chosen = () => false) {
  const head = columns.map(([name, , kind]) => el("th", { scope: "col", class: kind }, name));
  const lines = rows.map((row) =>
    el(
      "tr",
      { class: chosen(row) ? "chosen" : null },
      ...columns.map(([name, cell, kind]) => el("td", { class: kind, "data-label": name }, cell(row))),
    ),
  );
  return el(
    "table",
    { "aria-label": caption },
    el("thead", {}, el("tr", {}, ...head)),
    el("tbody", {}, ...lines),
  );
}

/** An explanation as the command prints it; a line with a name before its words is wrapped behind that name. */
function printed(words, key) {
  const lines = words.split("\n").map((line) => {
    const name = line.match(/^\S[^:]{0,20}: +/)?.[0].length;
    const shown = el("span", { class: name ? "words" : null }, line);
    if (name) Object.assign(shown.style, { paddingLeft: `${name}ch`, textIndent: `-${name}ch` });
    return shown;
  });
  return el("pre", { tabindex: 0, "data-key": key }, ...lines);
}

const text = (value) => (value == null || value === "" ? "-" : String(value));

// -- lists, a page at a time --------------------------------------------------------------------------

/** Which page of a list is shown: the continue tokens of this one and those before it. */
class Pages {
  constructor(changed) {
    this.changed = changed;
    this.first();
  }

  first() {
    this.tokens = [""];
    return this;
  }

  get token() {
    return this.tokens.at(-1);
  }

  /** The buttons below a list. */
  buttons(found, noun) {
    const step = (key, name, usable, act) =>
      el("button", { type: "button", "data-key": key, disabled: !usable, onclick: act }, name);
    const before = step("page-before", "Previous page", this.tokens.length > 1, () => {
      this.tokens.pop();
      this.changed();
    });
    const next = step("page-next", "Next page", Boolean(found.continue), () => {
      this.tokens.push(found.continue);
      this.changed();
    });
    const more = found.left ? `, ${found.left.toLocaleString("en")} more after them` : "";
    const nouns = found.items.length === 1 ? noun : `${noun}s`;
    const count = `Page ${this.tokens.length}: ${found.items.length} ${nouns}${more}`;
    return el("div", { class: "pager" }, before, next, el("span", {}, count));
  }
}

// -- the panels ---------------------------------------------------------------------------------------

class Panel {
  changes = true; // so it is asked for again

  constructor(name) {
    this.root = byId(name);
    this.list = this.root.querySelector("[data-list]");
    this.detail = this.root.querySelector("[data-detail]");
    this.pages = new Pages(() => show(true));
    this.chosen = null; // the key of what the detail is about
  }

  /** Show what a person has chosen, with a button that closes it. */
  open(...children) {
    const act = () => this.close();
    const close = el("button", { class: "close", type: "button", "data-key": "close", onclick: act }, "Close");
    replace(this.detail, close, ...children);
    this.detail.hidden = false;
  }

  close() {
    this.detail.hidden = true;
    const key = this.chosen;
    this.chosen = null;
    keyed(this.list, key ?? "")?.focus();
    show(true);
  }

  /** Open the detail for a person who has chosen it: there the keyboard goes on, and it is scrolled to. */
  choice(key, title) {
    this.chosen = key;
    this.open(el("h3", {}, title), el("p", { class: "note" }, "Asking …"));
    this.detail.focus({ preventScroll: true });
    const isBelow = this.detail.getBoundingClientRect().top > innerHeight / 2;
    if (isBelow || matchMedia("(max-width: 1099px)").matches) this.detail.scrollIntoView({ block: "start" });
  }

  /** Open the detail with the parts that `make` makes of an answer, or with what is wrong. Of two questions the later one counts. */
  async explain(key, title, make, ...question) {
    this.choice(key, title);
    const says = (words) => this.open(el("h3", {}, title), el("p", { class: "note" }, words));
    let parts;
    try {
      parts = make(await askPatiently(says, () => this.chosen === key, ...question));
    } catch (problem) {
      parts = [el("p", { role: "alert" }, problem.message)];
    }
    if (this.chosen === key) this.open(el("h3", {}, title), ...parts);
  }

  clear() {
    replace(this.list);
  }
}

class Queue extends Panel {
  constructor() {
    super("queue");
    byId("pod-asked").addEventListener("submit", (event) => {
      event.preventDefault();
      const [name, place] = byId("pod-name").value.trim().split("/").reverse();
      this.choose(place ?? (namespace() || "default"), name);
    });
  }

  async load() {
    const found = await ask("queue", { namespace: namespace(), continue: this.pages.token });
    return () => this.draw(found);
  }

  draw(found) {
    if (!found.items.length && !found.left) {
      replace(this.list, el("p", {}, `No pod waits for Eclectus ${inNamespace()}.`));
      return;
    }
    const key = (pod) => `${pod.namespace}/${pod.name}`;
    const columns = [
      ["Pod", (pod) => rowButton(key(pod), pod.name, () => this.choose(pod.namespace, pod.name))],
      ...(namespace() ? [] : [["Namespace", (pod) => pod.namespace]]),
      ["State", (pod) => el("span", { title: pod.means }, pod.state)],
      ["Waits", (pod) => pod.age, "number"],
      ["Ahead", (pod) => text(pod.ahead), "number"],
      ["Priority", (pod) => text(pod.priority), "number spare"],
      ...(found.items.some((pod) => pod.group) ? [["Group", (pod) => text(pod.group), "long spare"]] : []),
      ["Why", (pod) => pod.reason, "reason"],
    ];
    const rows = table("Pods that wait", columns, found.items, (pod) => key(pod) === this.chosen);
    replace(this.list, rows, this.pages.buttons(found, "pod"));
  }

  choose(place, name) {
    const make = (found) => [printed(found.text, "explanation"), this.again(place, name), ...whatIf(place, name)];
    this.explain(`${place}/${name}`, `Pod ${place}/${name}`, make, "pod", { namespace: place, name });
  }

  again(place, name) {
    return el("button", { type: "button", onclick: () => this.choose(place, name) }, "Explain it again, as of now");
  }
}

/** The form that asks what would be different for a pod. */
function whatIf(place, name) {
  const changes = el("textarea", { id: "changes", rows: 3, spellcheck: "false", placeholder: "request.cpu=500m" });
  const policy = el("input", { id: "policy", spellcheck: "false", placeholder: "kube" });
  const answer = el("div", { "aria-live": "polite" });
  const examples =
    "Examples: request.cpu=500m · priority=10 · node=NAME,taint-=KEY · node=NAME,cordon=false · " +
    "add-node-like=NAME,count=3 · delete-pod=NAMESPACE/NAME. Nothing is changed: it is computed on a copy.";
  let question = 0; // of two the later one counts
  const submitted = async (event) => {
    event.preventDefault();
    const mine = (question += 1), isWanted = () => mine === question && answer.isConnected;
    const says = (words) => replace(answer, el("p", { class: "note" }, words));
    says("Asking …");
    const body = { namespace: place, name, changes: changes.value.split("\n"), asPolicy: policy.value.trim() };
    let part;
    try {
      part = printed((await askPatiently(says, isWanted, "what-if", {}, body)).text, "answer");
    } catch (problem) {
      part = el("p", { role: "alert" }, problem.message);
    }
    if (isWanted()) replace(answer, part);
  };
  const form = el(
    "form",
    { id: "what-if", onsubmit: submitted },
    el("label", { for: "changes" }, "Changes, one a line", changes),
    el("p", { class: "note" }, examples),
    el("label", { for: "policy" }, "Place policy, if another is to decide ", policy),
    el("button", {}, "Ask what would be different"),
  );
  return [el("h4", {}, "What if"), form, answer];
}

class Nodes extends Panel {
  constructor() {
    super("nodes");
    this.chart = this.root.querySelector("[data-chart]");
    this.samples = new Map(); // name -> [time, speed], the oldest first
    this.began = Date.now();
  }

  async load() {
    const found = await ask("nodes", { continue: this.pages.token });
    return () => this.draw(found);
  }

  draw(found) {
    this.sample(found.items);
    if (!found.items.length) {
      replace(this.chart);
      replace(this.list, el("p", {}, "No node is known to the scheduler."));
      return;
    }
    const fastest = Math.max(1, ...found.items.map((node) => node.speed ?? 0));
    const columns = [
      ["Node", (node) => rowButton(node.name, node.name, () => this.choose(node.name))],
      ["Speed", (node) => (node.speed == null ? "-" : node.speed.toFixed(2)), "number"],
      ["", (node) => bar(120, fastest, [["held", node.speed ?? 0]], [["share", 1]])],
      ["State", (node) => node.state],
      ["Confidence", (node) => `${Math.round(100 * node.confidence)} %`, "number"],
      ["Samples", (node) => text(node.samples), "number"],
      ["Price", (node) => (node.price == null ? "-" : node.price.toFixed(2)), "number"],
    ];
    const rows = table("Nodes", columns, found.items, (node) => node.name === this.chosen);
    replace(this.list, rows, this.pages.buttons(found, "node"));
    this.drawChart(found.items);
  }

  /** Keep the speeds of the nodes of this page, and forget those of others. */
  sample(nodes) {
    const kept = new Map();
    for (const { name, speed } of nodes) {
      const before = this.samples.get(name) ?? [];
      kept.set(name, speed == null ? before : [...before, [Date.now(), speed]].slice(-SAMPLES_MOST));
    }
    this.samples = kept;
  }

  drawChart(nodes) {
    const lines = nodes.map(({ name }) => [name, this.samples.get(name)]).filter(([, each]) => each.length);
    const says = lines.length
      ? `Learned speed of the ${lines.length} nodes of this page since it was opened; choose a node to mark its line.`
      : "No speed is learned yet: there is nothing to draw.";
    const picture = lines.length ? speedChart(lines, this.chosen, this.chart.clientWidth || 600, says) : null;
    replace(this.chart, picture, el("figcaption", {}, says));
  }

  choose(name) {
    const make = (found) => {
      const resources = found.resources ?? [];
      const columns = [
        ["Resource", (each) => each.resource],
        ["", (each) => bar(140, each.of, [["held", each.held], ["planned", each.planned]], [])],
        ["Held", (each) => each.text.held, "number"],
        ["Planned", (each) => (each.planned ? each.text.planned : "-"), "number"],
        ["Free", (each) => each.text.free, "number"],
        ["Of", (each) => each.text.of, "number"],
      ];
      return [
        el("p", { class: "note" }, "What runs there holds, what is planned for pods that wait for it, and what is free."),
        table(`Resources of ${name}`, columns, resources),
        printed(found.text, "explanation"),
      ];
    };
    this.explain(name, `Node ${name}`, make, "node", { name });
    show(true);
  }
}

class Pools extends Panel {
  constructor() {
    super("pools");
  }

  async load() {
    const found = await ask("pools", { continue: this.pages.token });
    return () => this.draw(found);
  }

  draw(found) {
    if (!found.items.length) {
      replace(this.list, el("p", {}, "There are no Pools: nothing is shared or limited by them."));
      return;
    }
    const most = new Map();
    for (const each of found.items.flatMap((pool) => pool.resources)) {
      const largest = Math.max(each.held, each.share ?? 0, each.least ?? 0, most.get(each.resource) ?? 0);
      most.set(each.resource, largest);
    }
    const rows = found.items.flatMap((pool) => {
      const used = pool.resources.filter((each) => each.held || each.share || each.least);
      return (used.length ? used : [null]).map((resource, at) => ({ pool, resource, isFirst: at === 0 }));
    });
    const amount = (name) => ({ resource }) => (resource?.[name] ? resource.text[name] : "-");
    const ofPool = (cell) => (row) => (row.isFirst ? cell(row.pool) : "");
    const columns = [
      ["Pool", ({ pool, isFirst }) => indented(pool, isFirst)],
      ["Resource", ({ resource }) => (resource ? resource.resource + (resource.nodes ? ` on ${resource.nodes}` : "") : "-")],
      ["", ({ resource }) => (resource ? poolBar(resource, most.get(resource.resource)) : "")],
      ["Held", amount("held"), "number"],
      ["Share", amount("share"), "number"],
      ["Minimum", amount("least"), "number"],
      ["Maximum", amount("most"), "number"],
      ["Waiting pods", ofPool((pool) => text(pool.waiting)), "number"],
      ["Starved", ofPool((pool) => pool.starved), "number"],
    ];
    replace(this.list, table("Pools", columns, rows), this.pages.buttons(found, "pool"));
  }
}

/** The name of a pool; on a further line of it only where lines are shown apart. */
function indented(pool, isFirst) {
  const name = el("span", { title: pool.path, class: isFirst ? null : "again" }, pool.name);
  name.style.paddingLeft = `${1.2 * pool.depth}em`;
  return name;
}

function poolBar(resource, most) {
  const { held, share = 0, least = 0, nodes } = resource;
  const within = nodes ? held : Math.min(held, share);
  const marks = [...(share ? [["share", share]] : []), ...(least ? [["least", least]] : [])];
  return bar(180, most, [["held", within], ["above", held - within]], marks);
}

/** A bar of parts, one behind the other, with marks; its numbers stand beside it. */
function bar(width, most, parts, marks) {
  const scale = (amount) => (most > 0 ? (Math.min(amount, most) / most) * width : 0);
  const picture = svg("svg", { width: width + 4, height: 16, "aria-hidden": "true" });
  picture.append(svg("rect", { class: "track", x: 1, y: 3, width, height: 10, rx: 2 }));
  let at = 0;
  for (const [kind, amount] of parts) {
    const long = Math.min(scale(amount), width - at);
    if (long > 0) picture.append(svg("rect", { class: kind, x: 1 + at, y: 3, width: long, height: 10, rx: 2 }));
    at += long;
  }
  for (const [kind, amount] of marks) {
    const x = 1 + scale(amount);
    picture.append(svg("line", { class: kind, x1: x, x2: x, y1: 0, y2: 16 }));
  }
  return picture;
}

class Jobs extends Panel {
  constructor() {
    super("jobs");
  }

  async load() {
    const found = await ask("jobs", { namespace: namespace(), continue: this.pages.token });
    const job = this.chosen ? await this.read(this.chosen) : null;
    return () => {
      this.draw(found);
      if (job && this.chosen === job.key) this.open(...job.parts());
    };
  }

  /** A job as it is now, or what is wrong, with the parts of its picture. */
  async read(key) {
    const [place, name] = key.split("/");
    const head = el("h3", {}, `DAG job ${key}`);
    try {
      const found = await ask("job", { namespace: place, name });
      return { key, parts: () => [head, ...jobParts(found, this.root.clientWidth - 40)] };
    } catch (problem) {
      return { key, parts: () => [head, el("p", { role: "alert" }, problem.message)] };
    }
  }

  draw(found) {
    const notes = found.notes.map((each) => el("p", { class: "note" }, each));
    if (!found.items.length) {
      replace(this.list, el("p", {}, `There is no DAG job ${inNamespace()}.`), ...notes);
      return;
    }
    const key = (job) => `${job.namespace}/${job.name}`;
    const columns = [
      ["Job", (job) => rowButton(key(job), job.name, () => this.choose(key(job)))],
      ...(namespace() ? [] : [["Namespace", (job) => job.namespace]]),
      ["State", (job) => el("span", { title: job.message }, job.state)],
      ["Tasks done", (job) => `${job.tasks.succeeded} of ${job.tasks.all}`, "number"],
      ["Share", (job) => job.share],
      ["Lent", (job) => job.lent],
      ["Borrowed", (job) => job.borrowed],
      ["Finish", (job) => job.finish, "number"],
      ["Deadline", (job) => job.deadline, "number"],
    ];
    const rows = table("DAG jobs", columns, found.items, (job) => key(job) === this.chosen);
    replace(this.list, rows, this.pages.buttons(found, "job"), ...notes);
  }

  choose(key) {
    this.choice(key, `DAG job ${key}`);
    show(true);
  }
}

class Comparison extends Panel {
  changes = false;

  constructor() {
    super("comparison");
    this.chart = this.root.querySelector("[data-chart]");
  }

  async load() {
    const found = await ask("comparison");
    return () => this.draw(found);
  }

  draw({ scenario, about, subtitle, figures, tables, notes }) {
    const room = this.root.clientWidth, columns = Math.max(1, Math.floor(room / 420));
    const charts = figures.map((each) => intervals(each, Math.min(520, (room - 24 * (columns - 1)) / columns)));
    const words = el("figcaption", {}, "A dot is the mean over runs, its bar the interval; the dotted line is the mean of the first profile. An axis need not begin at 0.");
    replace(this.chart, el("h3", {}, scenario), el("p", {}, about), el("p", { class: "note" }, subtitle), el("div", { class: "charts" }, ...charts), words);
    replace(this.list, ...tables.flatMap(comparedTable), ...notes.map((each) => el("p", { class: "note" }, each)));
  }
}

/** A table as the command prints it: its first head is its name, and a line that is moved in belongs to the one above. */
function comparedTable({ heads, rows }) {
  const first = (row) => {
    const name = el("span", {}, row[0].trim());
    if (row[0].startsWith(" ")) name.style.paddingLeft = "1.2em";
    return name;
  };
  const [name, ...others] = heads;
  const numbers = others.map((head, at) => [head, (row) => row[at + 1], "number"]);
  const title = name === "profile" ? "Profiles" : name[0].toUpperCase() + name.slice(1);
  return [el("h4", {}, title), table(name, [["", first], ...numbers], rows)];
}

/** In a sentence or two how far a job is. */
function standing({ state, tasks, message }) {
  const more = state === "Succeeded" || !message ? "" : ` ${message}`;
  return `${state}: ${tasks.succeeded} of ${tasks.all} tasks have succeeded.${more}`;
}

const NOT_IN_THE_API =
  "What the API does not have: when pods that are gone have run, and what was lent and borrowed at each moment " +
  "of the past. The sums of it are in the table of the plan.";

function jobParts(job, width) {
  const facts = job.plan.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
  const columns = [
    ["Stage", (each) => each.name],
    ["After", (each) => text(each.dependsOn.join(", "))],
    ["State", (each) => each.state],
    ["Tasks done", (each) => `${each.succeeded} of ${each.tasks}`, "number"],
    ["Running", (each) => text(each.running), "number"],
    ["Estimate", (each) => each.estimate, "number"],
    ["Due", (each) => each.due, "number"],
    ["Why", (each) => text(each.why.join("; ")), "reason"],
  ];
  return [
    el("p", {}, standing(job)),
    ...job.notes.map((each) => el("p", { class: "note" }, each)),
    el("h4", {}, "Graph"),
    el("p", { class: "says" }, "Which stage waits for which: an arrow leads from a stage to those that need it."),
    el("div", { class: "scroll", tabindex: 0, "data-key": "graph" }, graph(job.stages)),
    el("h4", {}, "Gantt chart"),
    el("p", { class: "says" }, "When the stages have run, and when what is left of them would run by the estimates alone, all tasks of a stage at once."),
    el("p", { class: "key" }, "Filled: has run, or runs. Dashed: estimated. Triangle: due, its next task must start then for the deadline. Red line: the deadline."),
    el("div", { class: "scroll", tabindex: 0, "data-key": "gantt" }, gantt(job, width)),
    el("h4", {}, "Plan"),
    el("p", { class: "says" }, "What the scheduler plans for the job: its share, and what is lent and borrowed."),
    el("dl", {}, ...facts),
    el("h4", {}, "Stages"),
    table("Stages", columns, job.stages),
    el("h4", {}, "Why its pods wait"),
    printed(job.why, "why"),
    el("p", { class: "note" }, NOT_IN_THE_API),
  ];
}

// -- charts -------------------------------------------------------------------------------------------
// By hand: they are few and small, and need no library that writes styles into the page or takes megabytes.

const SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** A step of an axis of seconds such that at most so many steps cover a length. */
const timeStep = (length, most) => SPANS.find((each) => each * most >= length) ?? niceStep(length, most);

/** A step of an axis such that at most so many steps cover a length: 1, 2 or 5 times a power of ten. */
function niceStep(length, most) {
  const rough = length / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
}

const duration = (seconds) => {
  const size = Math.abs(seconds);
  if (size >= 7200) return `${+(seconds / 3600).toFixed(1)} h`;
  return size >= 120 ? `${+(seconds / 60).toFixed(1)} min` : `${Math.round(seconds)} s`;
};

function speedChart(lines, chosen, width, label) {
  const height = 230, left = 40, right = 12, top = 12, bottom = 26;
  const times = lines.flatMap(([, each]) => each.map(([at]) => at));
  const now = Math.max(...times), first = Math.min(...times, now - 60_000);
  const highest = 1.1 * Math.max(1, ...lines.flatMap(([, each]) => each.map(([, speed]) => speed)));
  const x = (at) => left + ((at - first) / (now - first)) * (width - left - right);
  const y = (speed) => height - bottom - (speed / highest) * (height - top - bottom);
  const picture = svg("svg", { width, height, role: "img", "aria-label": label });
  const step = niceStep(highest, 5);
  for (let speed = 0; speed <= highest; speed += step) {
    picture.append(
      svg("line", { class: "grid", x1: left, x2: width - right, y1: y(speed), y2: y(speed) }),
      svg("text", { class: "soft", x: left - 6, y: y(speed) + 4, "text-anchor": "end" }, String(+speed.toFixed(2))),
    );
  }
  const seconds = timeStep((now - first) / 1000, Math.max(2, Math.floor(width / 130)));
  for (let back = 0; back <= (now - first) / 1000; back += seconds) {
    const at = x(now - back * 1000), anchor = back === 0 ? "end" : "middle";
    const words = back === 0 ? "now" : `${duration(back)} ago`;
    if (at > left + 30) picture.append(svg("text", { class: "soft", x: at, y: height - 8, "text-anchor": anchor }, words));
  }
  for (const [name, samples] of [...lines].sort(([a], [b]) => (a === chosen) - (b === chosen))) {
    const points = samples.map(([at, speed]) => `${x(at).toFixed(1)},${y(speed).toFixed(1)}`);
    if (points.length === 1) points.push(`${width - right - 6},${points[0].split(",")[1]}`);
    const kind = name === chosen ? "speed chosen" : "speed";
    const title = svg("title", {}, `${name}: ${samples.at(-1)[1].toFixed(2)}`);
    picture.append(svg("polyline", { class: kind, points: points.join(" ") }, title));
    if (name === chosen) {
      const above = Math.max(y(samples.at(-1)[1]) - 6, top);
      picture.append(svg("text", { x: width - right, y: above, "text-anchor": "end" }, name));
    }
  }
  return picture;
}

/** A mean of each profile with its interval, below the profile's name. */
function intervals({ name, values }, width) {
  const line = 34, top = 24, right = 14, left = 8, height = top + line * values.length + 22;
  const lows = values.map((each) => each.low), highs = values.map((each) => each.high);
  const most = Math.max(...highs), least = Math.min(...lows);
  // From 0, unless that would leave the differences in a small part of the picture.
  const first = least >= 0 && least < 0.7 * most ? 0 : least - 0.1 * (most - least || 1);
  const last = most + 0.05 * (most - first || 1);
  const x = (value) => left + ((value - first) / (last - first)) * (width - left - right);
  const picture = svg("svg", { width, height, role: "img", "aria-label": `${name}; the tables say the same` });
  picture.append(svg("text", { class: "name", x: left, y: 14 }, name));
  const step = niceStep(last - first, Math.max(2, Math.floor(width / 80)));
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) {
    picture.append(
      svg("line", { class: "grid", x1: x(at), x2: x(at), y1: top, y2: height - 20 }),
      svg("text", { class: "soft", x: x(at), y: height - 6, "text-anchor": "middle" }, String(+at.toPrecision(6))),
    );
  }
  if (values.length) {
    const at = x(values[0].mean);
    picture.append(svg("line", { class: "now", x1: at, x2: at, y1: top, y2: height - 20 }));
  }
  values.forEach(({ profile, mean, low, high, text }, row) => {
    const y = top + row * line;
    const words = svg("text", { class: "over", x: left + 2, y: y + 13 }, `${cut(profile, 28)}  `, svg("tspan", { class: "soft" }, text));
    picture.append(
      words,
      svg("line", { class: "interval", x1: x(low), x2: x(high), y1: y + 23, y2: y + 23 }),
      svg("circle", { class: "mean", cx: x(mean), cy: y + 23, r: 4 }, svg("title", {}, `${profile}: ${text}`)),
    );
  });
  return picture;
}

/** By stage how many stages are before it on the longest chain. */
function depths(stages) {
  const parents = new Map(stages.map((each) => [each.name, each.dependsOn.filter((one) => one !== each.name)]));
  const found = new Map(stages.map((each) => [each.name, 0]));
  for (let turn = 0; turn < stages.length; turn += 1) {
    let isChanged = false;
    for (const [name, before] of parents) {
      const depth = Math.max(0, ...before.filter((one) => found.has(one)).map((one) => found.get(one) + 1));
      if (depth > found.get(name) && depth < stages.length) {
        found.set(name, depth);
        isChanged = true;
      }
    }
    if (!isChanged) break;
  }
  return found;
}

const cut = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

function graph(all) {
  const stages = all.slice(0, STAGES_DRAWN), wide = 150, high = 44, gapX = 50, gapY = 14;
  const depth = depths(stages), used = new Map(), places = new Map();
  for (const { name } of stages) {
    const column = depth.get(name), row = used.get(column) ?? 0;
    used.set(column, row + 1);
    places.set(name, [column, row]);
  }
  const rows = Math.max(...used.values()), columns = Math.max(...used.keys()) + 1;
  const corner = (name) => {
    const [column, row] = places.get(name);
    const shift = ((rows - used.get(column)) * (high + gapY)) / 2;
    return [2 + column * (wide + gapX), 2 + shift + row * (high + gapY)];
  };
  const left = all.length - stages.length;
  const label = `Graph of ${all.length} stages${left ? `, ${left} of them not drawn` : ""}; the table of stages says the same`;
  const size = { width: columns * (wide + gapX) - gapX + 4, height: rows * (high + gapY) - gapY + 4 };
  const picture = svg("svg", { ...size, role: "img", "aria-label": label });
  for (const { name, dependsOn } of stages) {
    const [x, y] = corner(name);
    for (const parent of dependsOn.filter((each) => places.has(each))) {
      const [fromX, fromY] = corner(parent);
      const ends = [fromX + wide, fromY + high / 2, x - 6, y + high / 2];
      const middle = (ends[0] + ends[2]) / 2;
      const curve = `M${ends[0]},${ends[1]} C${middle},${ends[1]} ${middle},${ends[3]} ${ends[2]},${ends[3]}`;
      picture.append(svg("path", { class: "edge", d: `${curve} m-5,-4 l6,4 l-6,4` }));
    }
  }
  for (const { name, state, succeeded, tasks } of stages) {
    const [x, y] = corner(name);
    picture.append(
      svg("rect", { class: `stage ${state}`, x, y, width: wide, height: high, rx: 6 }, svg("title", {}, name)),
      svg("text", { x: x + 10, y: y + 18 }, cut(name, 18)),
      svg("text", { class: "soft", x: x + 10, y: y + 35 }, `${state}, ${succeeded} of ${tasks}`),
    );
  }
  return picture;
}

function gantt(job, room) {
  const bars = job.bars.slice(0, STAGES_DRAWN), line = 24, top = 26, names = 130;
  const times = bars.flatMap((each) => [each.began, each.ended, each.begins, each.ends, each.due]);
  const known = [...times, job.deadlineSeconds].filter((each) => each != null);
  if (!known.length) return el("p", { class: "note" }, "No stage has run, and nothing is estimated.");
  const first = Math.min(0, ...known), last = Math.max(0, ...known);
  const length = Math.max(last - first, 1), width = Math.max(room, 520), height = top + line * bars.length + 8;
  const x = (seconds) => names + ((seconds - first) / length) * (width - names - 20);
  const picture = svg("svg", { width, height, role: "img", "aria-label": "Gantt chart of the stages" });
  const step = timeStep(length, Math.max(2, Math.floor((width - names) / 90)));
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) {
    const words = Math.abs(at) < step / 2 ? "now" : at < 0 ? `${duration(-at)} ago` : `in ${duration(at)}`;
    picture.append(
      svg("line", { class: Math.abs(at) < step / 2 ? "now" : "grid", x1: x(at), x2: x(at), y1: top - 6, y2: height }),
      svg("text", { class: "soft", x: x(at), y: 12, "text-anchor": "middle" }, words),
    );
  }
  bars.forEach((each, row) => {
    const y = top + row * line;
    const box = (kind, from, to, words) =>
      svg("rect", { class: kind, x: x(from), y: y + 3, width: Math.max(x(to) - x(from), 2), height: 14, rx: 3 }, svg("title", {}, words));
    picture.append(svg("text", { x: 4, y: y + 15 }, cut(each.name, 17), svg("title", {}, each.name)));
    if (each.began != null) {
      const end = each.ended ?? 0, words = each.ended == null ? "runs" : "has run";
      picture.append(box("ran", each.began, end, `${each.name} ${words} for ${duration(end - each.began)}`));
    }
    if (each.begins != null && each.ends - each.begins >= 1) {
      const words = `${each.name} would take ${duration(each.ends - each.begins)}`;
      picture.append(box("forecast", each.begins, each.ends, words));
    }
    if (each.due != null) {
      const at = x(each.due), tip = `${at},${y + 17} ${at - 5},${y + 5} ${at + 5},${y + 5}`;
      picture.append(svg("polygon", { class: "due", points: tip }, svg("title", {}, `due ${duration(each.due)} from now`)));
    }
  });
  if (job.deadlineSeconds != null) {
    const at = x(job.deadlineSeconds);
    picture.append(svg("line", { class: "deadline", x1: at, x2: at, y1: top - 6, y2: height }, svg("title", {}, "deadline")));
  }
  return picture;
}

// -- which panel is shown, and when it is asked for ---------------------------------------------------

const KINDS = { comparison: Comparison, queue: Queue, nodes: Nodes, pools: Pools, jobs: Jobs };
const WITH_NAMESPACE = ["queue", "jobs"];
const panels = {}; // those that this server has, the first one first
let shown;
let place = "";
let timer;
let turn = 0; // of two answers the one that was asked for later counts

const namespace = () => place;
const inNamespace = () => (place ? `in namespace ${place}` : "in any namespace");

/** Ask for the panel that is shown, draw it, and do so again after some seconds. */
async function show(isWanted = false) {
  clearTimeout(timer);
  if (!shown || (document.hidden && !isWanted)) return;
  const mine = (turn += 1), panel = shown;
  let pause = panel.changes ? SECONDS : Infinity;
  try {
    const draw = await panel.load();
    if (mine !== turn) return;
    if (isWanted || !isSelecting(panel.root)) draw();
    tell("");
    byId("asked").textContent = panel.changes
      ? `As of ${new Date().toLocaleTimeString()}; asked again every ${SECONDS} seconds while this page can be seen.`
      : "As it was when `eclectus ui` was started.";
  } catch (problem) {
    if (mine !== turn) return;
    if (!(problem instanceof Problem)) throw problem;
    panel.clear();
    tell(problem.message);
    pause = problem.status === 401 ? Infinity : SECONDS_AFTER_PROBLEM;
  }
  if (pause < Infinity) timer = setTimeout(show, 1000 * pause);
}

/** Whether a person has marked a text in an element, perhaps to copy it: drawing it anew would unmark it. */
function isSelecting(element) {
  const marked = getSelection();
  return !marked.isCollapsed && element.contains(marked.anchorNode);
}

function tell(problem) {
  byId("problem").hidden = !problem;
  if (byId("problem").textContent !== problem) byId("problem").textContent = problem;
}

/** Show the panel that the address names. */
function go() {
  const name = location.hash.slice(1) in panels ? location.hash.slice(1) : Object.keys(panels)[0];
  shown = panels[name];
  for (const [each, panel] of Object.entries(panels)) panel.root.hidden = each !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byId("place").hidden = !WITH_NAMESPACE.includes(name);
  tell("");
  return show(true);
}

byId("place").addEventListener("submit", (event) => {
  event.preventDefault();
  place = byId("namespace").value.trim();
  for (const panel of Object.values(panels)) panel.pages.first();
  show(true);
});
addEventListener("hashchange", () => (location.hash.startsWith("#token=") ? location.reload() : shown && go()));
document.addEventListener("visibilitychange", () => show());

try {
  const about = await ask("start");
  for (const name of about.panels) {
    panels[name] = new KINDS[name]();
    document.querySelector(`nav a[href="#${name}"]`).hidden = false;
  }
  place = about.namespace;
  byId("namespace").value = place;
  byId("where").textContent = about.server;
  await go();
} catch (problem) {
  tell(problem.message);
}
