/*
 * The status page: reads the status API and draws what it says, again and
 * again, in place, so that the focus and the place in a table stay.
 *
 * Everything is asked of "?asset=", which works below any location.  Texts
 * come from the API server's users: they go into the document as text only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

"use strict";

const PERIOD = 5000;        // ms between two reads of the status
const TIMEOUT = 15000;      // ms until an answer is given up
const LIMIT = 500;          // Services asked for at a time
const OVERSCAN = 8;         // rows drawn above and below those in sight
const EVENTS = 50;          // changes that are shown
const NEWS = 2000;          // ms between two announcements of changes
const REST = 10;            // a reload of all Services takes 1/REST of time

const $ = (id) => document.getElementById(id);


// Reading

function url(path, query = {}) {
    const more = Object.entries(query).map(([name, value]) =>
        `&${name}=${encodeURIComponent(value)}`);

    return `?asset=${path}${more.join("")}`;
}


async function read(path, query) {
    const answer = await fetch(url(path, query), {
        cache: "no-store",
        signal: AbortSignal.timeout(TIMEOUT),
    });

    if (!answer.ok) {
        throw Object.assign(new Error(`HTTP ${answer.status}`),
                            { status: answer.status });
    }

    return answer.json();
}


// Texts

// Intl would do this, too, but its first use takes a tenth of a second.
const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
const two = (n) => String(n).padStart(2, "0");

const plural = (n, one, many = `${one}s`) =>
    `${number(n)} ${n === 1 ? one : many}`;


function ago(seconds) {
    if (seconds === null) {
        return "never";
    }

    return `${duration(seconds)} ago`;
}


function duration(seconds) {
    if (seconds < 10) {
        return `${seconds.toFixed(1)} s`;
    }

    if (seconds < 120) {
        return `${Math.round(seconds)} s`;
    }

    if (seconds < 7200) {
        return `${Math.round(seconds / 60)} min`;
    }

    return `${Math.round(seconds / 3600)} h`;
}


// The reader's time of day, and the day unless it is today.
function clock(iso) {
    const date = new Date(iso);
    const time = [date.getHours(), date.getMinutes(), date.getSeconds()]
        .map(two).join(":");
    const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()]
        .map(two).join("-");

    return date.toDateString() === new Date().toDateString()
        ? time : `${day} ${time}`;
}


function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB"];
    let unit = 0;

    for ( ; n >= 1024 && unit < 3; unit++) {
        n /= 1024;
    }

    return `${n < 10 && unit ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}


const address = (ip) => ip.includes(":") ? `[${ip}]` : ip;

const ports = (list) => list.map((port) =>
    `${port.name ? `${port.name} ` : ""}${port.port ?? "none"}/${port.protocol}`)
    .join(", ");


// Drawing: an element is touched only where it would change.

function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);

    for (const [name, value] of Object.entries(properties)) {
        if (name in element) {
            element[name] = value;
        } else {
            element.setAttribute(name, value);
        }
    }

    element.append(...children);

    return element;
}


// value: a text, or {text, kind, title}; kind is a class of status.css.
function put(element, value) {
    const { text, kind = "", title = "" } =
        value !== null && typeof value === "object" ? value : { text: value };
    const shown = String(text ?? "");

    if (element.textContent !== shown) {
        element.textContent = shown;
    }

    if (kind !== (element.dataset.kind ?? "")) {
        element.classList.remove(...(element.dataset.kind ?? "").split(" ")
                                    .filter(Boolean));
        element.classList.add(...kind.split(" ").filter(Boolean));
        element.dataset.kind = kind;
    }

    if (element.title !== title) {
        element.title = title;
    }
}


/*
 * Makes the children of parent stand for items, in their order: elements of
 * keys that stay are kept.  made is a Map of the elements by key.
 */
function arrange(parent, made, items, key, create, update) {
    const gone = new Set(made.keys());
    let next = parent.firstElementChild;

    for (const item of items) {
        const name = key(item);
        let element = made.get(name);

        if (element === undefined) {
            element = create(item);
            made.set(name, element);
        }

        gone.delete(name);
        update(element, item);

        if (element === next) {
            next = next.nextElementSibling;
        } else {
            parent.insertBefore(element, next);
        }
    }

    for (const name of gone) {
        made.get(name).remove();
        made.delete(name);
    }
}


// <dl>: facts is a list of [name, value]; a value may be an element.
function facts(list, pairs) {
    list.made ??= new Map();

    arrange(list, list.made, pairs, ([name]) => name,
            ([name]) => make("div", {}, make("dt", { textContent: name }),
                             make("dd")),
            (element, [, value]) => {
                const dd = element.lastElementChild;

                if (!(value instanceof Element)) {
                    put(dd, value);

                } else if (dd.firstElementChild !== value) {
                    dd.replaceChildren(value);
                }
            });
}


// A table of few rows.  columns: [title, (row) => value, class].
class Table {
    constructor(parent, caption, columns, key) {
        this.columns = columns;
        this.key = key;
        this.made = new Map();
        this.body = make("tbody");

        const head = columns.map(([title, , kind]) =>
            make("th", { scope: "col", textContent: title,
                         className: kind ?? "" }));

        parent.append(make("div", { className: "frame few", tabIndex: 0,
                                    role: "region", ariaLabel: caption },
            make("table", {}, make("thead", {}, make("tr", {}, ...head)),
                 this.body)));
    }

    draw(rows) {
        arrange(this.body, this.made, rows, this.key,
                () => make("tr", {}, ...this.columns.map(([title, , kind], i) =>
                    i === 0 ? make("th", { scope: "row" })
                            : make("td", { className: kind ?? "",
                                           "data-title": title }))),
                (tr, row) => this.columns.forEach(([, value], i) =>
                    put(tr.children[i], value(row))));
    }
}


/*
 * A table of any length, of which only the rows in sight are in the document.
 * A column of it has a width, too.  The first cell may hold a button; the arrow keys go from one to the next.
 */
class Rows {
    constructor(parent, caption, columns, key, open) {
        this.columns = columns;
        this.key = key;
        this.open = open;
        this.made = new Map();
        this.items = [];
        this.active = 0;

        const head = columns.map(([title, , kind]) =>
            make("th", { scope: "col", role: "columnheader",
                         textContent: title, className: kind ?? "" }));

        this.above = this.spacer();
        this.below = this.spacer();
        this.body = make("tbody", { role: "rowgroup" });
        this.table = make("table", { role: "table", ariaLabel: caption },
            make("colgroup", {}, ...columns.map(([, , , width]) => {
                const col = make("col");

                col.style.width = width;

                return col;
            })),
            make("thead", { role: "rowgroup" },
                 make("tr", { role: "row" }, ...head)),
            make("tbody", { ariaHidden: "true" }, this.above), this.body,
            make("tbody", { ariaHidden: "true" }, this.below));
        this.frame = make("div", { className: "frame tall rows",
                                   tabIndex: open ? -1 : 0, role: "region",
                                   ariaLabel: caption }, this.table);

        this.frame.addEventListener("scroll", () => this.later());
        this.frame.addEventListener("keydown", (event) => this.press(event));
        new ResizeObserver(() => this.later()).observe(this.frame);

        parent.append(this.frame);
    }

    spacer() {
        return make("tr", { className: "space" },
                    make("td", { colSpan: this.columns.length }));
    }

    draw(items) {
        this.items = items;
        this.active = Math.max(0, Math.min(this.active, items.length - 1));
        this.frame.hidden = items.length === 0;
        this.table.ariaRowCount = items.length + 1;
        this.now();
    }

    later() {
        this.due ??= requestAnimationFrame(() => this.now());
    }

    // The rows in sight, and some above and below.
    now() {
        const row = parseInt(getComputedStyle(this.frame)
                             .getPropertyValue("--row"), 10);
        const count = Math.ceil((this.frame.clientHeight || 800) / row)
                      + 2 * OVERSCAN;
        const top = Math.floor(this.frame.scrollTop / row) - OVERSCAN;
        const start = Math.max(0, Math.min(top, this.items.length - count));
        const end = Math.min(this.items.length, start + count);

        this.due = undefined;
        this.row = row;
        this.start = start;

        this.space(this.above, start * row);
        this.space(this.below, (this.items.length - end) * row);

        let index = start;

        arrange(this.body, this.made, this.items.slice(start, end), this.key,
                () => this.create(),
                (tr, item) => this.update(tr, item, index++));
    }

    space(tr, height) {
        tr.hidden = height === 0;
        tr.firstElementChild.style.height = `${height}px`;
    }

    create() {
        const tr = make("tr", { role: "row" }, ...this.columns.map(
            ([, , kind], i) => i === 0
                ? make("th", { scope: "row", role: "rowheader" })
                : make("td", { role: "cell", className: kind ?? "" })));

        if (this.open) {
            const button = make("button", { type: "button", tabIndex: -1 });

            button.addEventListener("click", () => this.open(tr.item));
            button.addEventListener("focus", () => this.activate(tr.index));
            tr.firstElementChild.append(button);
        }

        return tr;
    }

    update(tr, item, index) {
        tr.item = item;
        tr.index = index;
        tr.ariaRowIndex = index + 2;

        this.columns.forEach(([, value], i) => {
            const cell = tr.children[i];
            const shown = value(item);

            put(i === 0 && this.open ? cell.firstElementChild : cell,
                { title: shown?.text ?? shown, ...(typeof shown === "object"
                  && shown !== null ? shown : { text: shown }) });
        });

        if (this.open) {
            tr.firstElementChild.firstElementChild.tabIndex =
                index === this.active ? 0 : -1;
        }
    }

    activate(index) {
        if (index !== this.active) {
            this.active = index;
            this.later();
        }
    }

    // Goes to a row and gives it the focus.
    go(index) {
        index = Math.max(0, Math.min(index, this.items.length - 1));

        const top = index * this.row;
        const head = this.table.tHead.offsetHeight;
        const height = this.frame.clientHeight - head;

        if (top < this.frame.scrollTop) {
            this.frame.scrollTop = top;

        } else if (top + this.row > this.frame.scrollTop + height) {
            this.frame.scrollTop = top + this.row - height;
        }

        this.active = index;
        this.now();
        this.body.children[index - this.start]?.querySelector("button")
            ?.focus({ preventScroll: true });
    }

    press(event) {
        const page = Math.max(1, Math.floor(this.frame.clientHeight
                                            / this.row) - 1);
        const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page,
                        PageUp: -page, Home: -Infinity, End: Infinity };
        const step = steps[event.key];

        if (!this.open || step === undefined || event.ctrlKey
            || event.altKey || event.metaKey)
        {
            return;
        }

        event.preventDefault();
        this.go(this.active + step);
    }
}


// What an informer's first line says, and how it looks.
function headline(informer) {
    const causes = informer.degraded;
    const away = causes.find((d) => !d.following);
    let text = informer.ready ? "Serving"
        : `Not ready: ${informer.reason.replaceAll("_", " ")}`;
    let kind = informer.ready ? "good" : "bad";

    if (informer.ready && informer.state_file.in_use) {
        text += " from the state file";
    }

    if (away) {
        text += `. Not following${away.since ? ` since ${clock(away.since)}`
                                             : ""}: ${away.text}`;
        kind = informer.ready ? "warn" : "bad";

    } else if (informer.stale) {
        text += ". Endpoints may be out of date";
        kind = informer.ready ? "warn" : "bad";

    } else if (informer.ready) {
        text += causes.length ? ` and following. Degraded: ${
            causes.map((d) => d.text).join("; ")}`
            : " and following the API server";
        kind = causes.length ? "warn" : "good";
    }

    return { text: many() ? `${informer.name}: ${text}` : text, kind };
}


function zone({ used, size, failures }) {
    const text = `${bytes(used)} of ${bytes(size)} (${
        Math.round(100 * used / size)} %)`;

    return failures ? { text: `${text}, ${plural(failures, "object")
                                          } found no room`, kind: "bad" }
                    : text;
}


function drawInformers() {
    const box = $("informers");

    box.made ??= new Map();

    arrange(box, box.made, page.status.informers, (i) => i.name,
            (i) => make("div", { className: "informer", role: "group",
                                 ariaLabel: `Informer ${i.name}` },
                        make("p", { className: "banner", role: "status" }),
                        make("dl", { className: "facts" })),
            (element, i) => {
                put(element.firstElementChild, headline(i));
                facts(element.lastElementChild, [
                    ["API server", i.server || "none yet"],
                    ["Last known current", i.stale
                        ? { text: ago(i.age_seconds), kind: "warn" }
                        : ago(i.age_seconds)],
                    ["Synced", i.synced ? "yes"
                                        : { text: "no", kind: "bad" }],
                    ["Informer process", i.writer.pid === null
                        ? { text: "none", kind: "bad" }
                        : { text: `${i.writer.pid} since ${
                                clock(i.writer.since)}`,
                            title: i.writer.since }],
                    ["Take-overs", `${i.writer.takeovers}, ${
                        plural(i.writer.crashes, "crash", "crashes")}`],
                    [`Zone ${i.zone.name}`, zone(i.zone)],
                    ["State file", i.state_file.error
                        ? { text: i.state_file.error, kind: "bad" }
                        : i.state_file.written
                            ? `written ${clock(i.state_file.written)}`
                            : "not written"],
                ]);
            });
}


// What is wrong, the worst first: [kind, what, text].
function problems() {
    const found = [];

    for (const i of page.status.informers) {
        const where = many() ? ` (${i.name})` : "";

        for (const d of i.degraded) {
            found.push(["warn", `${d.cause.replaceAll("_", " ")}${where}`,
                        d.text + (d.since ? `, since ${clock(d.since)}`
                                          : "")]);
        }

        for (const r of i.resources) {
            if (r.refused_total) {
                const names = r.refused.slice(0, 5).map((o) =>
                    `${o.key} (${o.reason}${o.outdated ? ", outdated" : ""})`
                ).join(", ");

                found.push(["warn", `${plural(r.refused_total, "object")} of ${
                    r.resource} not held${where}`, r.refused_total > 5
                    ? `${names} and ${r.refused_total - 5} more` : names]);
            }

            if (r.refused_unnamed) {
                found.push(["warn", `At most ${
                    plural(r.refused_unnamed, "more object")} of ${
                    r.resource} not held${where}`,
                    "there is no room for their names"]);
            }
        }
    }

    for (const u of page.status.upstreams) {
        if (u.error) {
            found.push(["bad", `${u.directive} ${u.name}`,
                        u.why || `${u.key}: ${u.error}`]);
        }
    }

    return found;
}


function drawProblems() {
    const list = $("problems").querySelector("ul");
    const found = problems();

    list.made ??= new Map();
    $("problems").hidden = found.length === 0;

    arrange(list, list.made, found, (p) => p.join("\n"),
            ([kind, what, text]) => make("li", { className: kind },
                make("strong", { textContent: what }),
                make("span", { textContent: text })),
            () => {});
}


const UPSTREAMS = [
    ["Directive", (u) => `${u.directive} ${u.name}`],
    ["Key", (u) => u.key],
    ["Resolves to", (u) => u.error
        ? { text: u.error.replaceAll("_", " "), kind: "bad",
            title: u.why ?? "" }
        : u.service ?? { text: "a key for each request", kind: "faint" }],
    ["Endpoints", (u) => u.endpoints === undefined ? "" : u.state === "terminating"
        ? { text: `${u.endpoints}, terminating`, kind: "warn" }
        : u.endpoints, "number"],
    ["Informer", (u) => u.informer, "whose"],
    ["Line", (u) => ({ text: `${u.file.split("/").pop()}:${u.line}`,
                       title: `${u.file}:${u.line}` })],
];

const RESOURCES = [
    ["Resource", (r) => r.resource],
    ["Namespace", (r) => r.namespace || "all"],
    ["Informer", (r) => r.informer, "whose"],
    ["State", (r) => ({ text: r.retry_seconds === null ? r.state
                        : `${r.state}, again in ${duration(r.retry_seconds)}`,
                        kind: r.state === "watching" ? "" : "warn" })],
    ["Version", (r) => r.resource_version || "none yet"],
    ["Objects", (r) => number(r.objects), "number"],
    ["Lists", (r) => r.lists, "number"],
    ["Watches", (r) => r.watches, "number"],
    ["Relists", (r) => ({ text: number(r.relists),
                          title: Object.entries(r.relist_reasons)
                              .filter(([, n]) => n > 0)
                              .map(([why, n]) => `${why}: ${n}`).join(", ") }),
        "number"],
    ["Events", (r) => number(r.events.added + r.events.modified
                           + r.events.deleted), "number"],
    ["Skipped", (r) => r.skipped, "number"],
    ["Refused", (r) => r.refused_total + r.refused_unnamed, "number"],
    ["Last event", (r) => r.last_event_seconds === null ? "none"
        : ago(r.last_event_seconds)],
    ["Last error", (r) => r.last_error.at === null ? "none"
        : { text: `${clock(r.last_error.at)} ${r.last_error.reason}${
                r.last_error.message ? `: ${r.last_error.message}` : ""}`,
            title: r.last_error.at }, "text"],
];


function drawTables() {
    const resources = page.status.informers.flatMap((i) =>
        i.resources.map((r) => ({ ...r, informer: i.name })));

    page.upstreams ??= new Table($("upstreams"), "Upstreams and keys",
        UPSTREAMS, (u) => `${u.file}:${u.line}:${u.directive}:${u.name}:${
            u.key}`);
    page.resources ??= new Table($("resources"), "Resources", RESOURCES,
        (r) => `${r.informer} ${r.resource} ${r.namespace}`);

    // a row for each key that was asked for, below that of its directive;
    // what cannot be resolved comes first

    const upstreams = page.status.upstreams.flatMap((u) =>
        [u, ...(u.keys ?? []).map((k) => ({ ...u, ...k }))]);

    page.upstreams.draw([...upstreams.filter((u) => u.error),
                         ...upstreams.filter((u) => !u.error)]);
    page.resources.draw(resources);

    $("upstreams").hidden = page.status.upstreams.length === 0;
    $("resources").hidden = resources.length === 0;
}


// Services

// 0: has endpoints and none is usable, 1: has none, 2: some, 3: all usable
function rank(service) {
    if (service.error) {
        return 0;
    }

    if (service.type === "ExternalName") {
        return 3;
    }

    if (service.endpoints_used === 0) {
        return service.endpoints_total === 0 ? 1 : 0;
    }

    return service.endpoints_used < service.endpoints_total ? 2 : 3;
}


const SERVICES = [
    ["Service", (s) => `${s.namespace}/${s.name}`, "", "38%"],
    ["Type", (s) => s.headless ? "headless" : s.type, "", "14%"],
    ["Ports", (s) => ports(s.ports), "", "24%"],
    ["Usable endpoints", (s) => s.error ? { text: s.error, kind: "bad" }
        : s.type === "ExternalName" ? "" : {
            text: `${s.endpoints_used} of ${s.endpoints_total}`,
            kind: ["bad", "warn", "", ""][s.rank] }, "number", "14%"],
    ["Revision", (s) => s.generation, "number", "10%"],
];


// The Services of the informer shown, as of one moment.
async function loadServices(informer) {
    const started = performance.now();
    const loaded = [];
    let after = "";

    do {
        const part = await read("api/v1/services",
                                { informer, limit: LIMIT, after });

        for (const s of part.items) {
            s.rank = rank(s);
            s.text = `${s.namespace}/${s.name} ${s.type} ${ports(s.ports)} ${
                s.headless ? "headless" : ""} ${s.cluster_ips.join(" ")}`
                .toLowerCase();
            loaded.push(s);
        }

        after = part.next;

        if (page.services.informer !== informer) {
            drawServices(loaded, informer, after !== "");
        }
    } while (after !== "" && informer === $("informer").value);

    if (informer === $("informer").value) {
        drawServices(loaded, informer, false);
    }

    page.rest = performance.now() + REST * (performance.now() - started);
}


// They are read again only where a digest of the zone has changed.
async function refreshServices() {
    const name = $("informer").value;
    const informer = page.status.informers.find((i) => i.name === name);
    const digest = JSON.stringify([name, informer?.epoch,
        informer?.resources.map((r) => r.digest)]);

    if (!informer || digest === page.digest
        || (page.services.informer === name && performance.now() < page.rest))
    {
        return;
    }

    await loadServices(name);
    page.digest = digest;
}


function drawServices(list, informer, more) {
    // problems first, in their order otherwise

    const ranks = [[], [], [], []];

    list.forEach((s) => ranks[s.rank].push(s));

    page.services = { informer: more ? null : informer, more,
                      list: ranks.flat() };
    drawShown();
}


function drawShown() {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const only = $("only").checked;
    const { list, more } = page.services;
    const shown = list.filter((s) => (!only || s.rank < 2)
        && words.every((word) => s.text.includes(word)));
    const lost = list.filter((s) => s.rank < 2).length;

    page.rows ??= new Rows($("services"), "Services", SERVICES,
        (s) => `${s.namespace}/${s.name}`, (s) => {
            location.hash = `${$("informer").value}/${s.namespace}/${s.name}`;
        });

    page.rows.draw(shown);
    put($("shown"), shown.length === list.length
        ? `${plural(list.length, "Service")}${more ? " so far" : ""}, ${
            number(lost)} without a usable endpoint`
        : `${plural(shown.length, "Service")} of ${
            number(list.length)}`);
}


// One Service with its endpoints, named by the address's hash.

const ENDPOINTS = [
    ["Address", (e) => address(e.address), "", "16%"],
    ["Port", (e) => e.ports.map((p) => p.port ?? "none").join(", ")
        + (e.ports_total > e.ports.length
            ? `, of ${number(e.ports_total)}` : ""), "", "7%"],
    ["Used", (e) => e.used ? { text: "yes", kind: "good" } : {
        text: `no: ${e.excluded_because}${
            e.denied_because ? ` (${e.denied_because})` : ""}`,
        kind: "bad" }, "", "21%"],
    ["State", (e) => [e.ready ? "ready" : "not ready",
                      e.serving ? "" : "not serving",
                      e.terminating ? "terminating" : ""]
        .filter(Boolean).join(", "), "", "14%"],
    ["Pod", (e) => e.pod, "", "16%"],
    ["Node", (e) => e.node, "", "10%"],
    ["Zone", (e) => e.zone, "", "7%"],
    ["Slice", (e) => e.slice, "", "9%"],
];


async function refreshDetail() {
    const name = decodeURIComponent(location.hash.slice(1));
    const [informer, ns, service] = name.split("/");
    const dialog = $("detail");

    if (!service) {
        dialog.close();
        return;
    }

    const path = `api/v1/services/${encodeURIComponent(ns)}/${
        encodeURIComponent(service)}`;

    page.endpoints ??= new Rows($("endpoints"), "Endpoints", ENDPOINTS,
        (e) => `${e.slice} ${e.address} ${e.pod}`);

    if (page.detail !== name) {
        page.detail = name;
        put($("detail-title"), `${ns}/${service}`);
        $("detail-json").href = url(path, { informer });
        facts($("detail-facts"), []);
        page.endpoints.draw([]);
    }

    if (!dialog.open) {
        dialog.showModal();
    }

    try {
        drawDetail(await read(path, { informer }), name);
        $("detail-fault").hidden = true;

    } catch (error) {
        put($("detail-fault"), error.status === 404
            ? "There is no such Service now."
            : `It cannot be read: ${error.message}`);
        $("detail-fault").hidden = false;
    }
}


function drawDetail(s, name) {
    const used = s.endpoints.filter((e) => e.used);

    if (page.detail !== name) {
        return;
    }

    facts($("detail-facts"), [
        ["Type", s.headless ? `${s.type}, headless` : s.type],
        ["Cluster addresses", s.cluster_ips.join(", ") || "none"],
        ["Ports", ports(s.ports) || "none"],
        ["Usable endpoints", { text: `${s.endpoints_used} of ${
                                   s.endpoints_total}${
                                   s.endpoints_total > s.endpoints.length
                                   ? `, ${s.endpoints.length} shown` : ""}`,
                               kind: s.endpoints_used ? "" : "bad" }],
        ["Revision", s.generation],
    ]);

    page.endpoints.draw([...s.endpoints.filter((e) => !e.used), ...used]);
}


// Changes as they come, while the page is in sight.  What is read aloud is a
// count now and then, not each of them.

const CHANGES = { add: "added", update: "changed", delete: "deleted" };


function openFeed() {
    const informer = $("informer").value;

    if (page.feed?.informer === informer
        && page.feed.source.readyState !== EventSource.CLOSED)
    {
        return;
    }

    closeFeed();

    const source = new EventSource(url("api/v1/events", { informer }));

    page.feed = { informer, source, lines: [], count: 0, number: 0 };
    $("feed").hidden = false;

    for (const kind of Object.keys(CHANGES)) {
        source.addEventListener(kind, (event) => {
            const change = JSON.parse(event.data);

            tell(`${CHANGES[change.refused ? "delete" : kind]}${
                change.refused ? ", refused" : ""}`,
                 `${change.resource} ${change.namespace}/${change.name}`);
        });
    }

    source.addEventListener("overflow", () =>
        tell("missed", "more changes than could be followed"));
    source.addEventListener("resync", (event) => {
        if (JSON.parse(event.data).reason !== "start") {
            tell("missed", "changes may have been missed");
        }
    });

    source.addEventListener("open", () => say("Following."));
    source.addEventListener("error", () =>
        say(source.readyState === EventSource.CLOSED
            ? "Not available from this worker now." : "Connecting again."));
}


function closeFeed() {
    page.feed?.source.close();
    clearTimeout(page.feed?.due);
    page.feed = null;
}


const say = (text) => put($("news"), text);


function tell(what, text) {
    const { feed } = page;

    feed.lines.unshift({ key: feed.number++, what, text,
                         time: clock(new Date().toISOString()) });
    feed.lines.length = Math.min(feed.lines.length, EVENTS);
    feed.count++;
    feed.due ??= setTimeout(() => {
        feed.due = undefined;
        say(`${plural(feed.count, "change")} since this page was opened.`);
        drawFeed();
    }, feed.count === 1 ? 0 : NEWS);
}


function drawFeed() {
    const list = $("events");

    list.made ??= new Map();
    arrange(list, list.made, page.feed.lines, (line) => line.key,
            (line) => make("li", {},
                make("time", { textContent: line.time }), " ",
                make("strong", { textContent: line.what }), " ",
                make("span", { textContent: line.text })),
            () => {});
}


// The page as a whole

const many = () => page.status.informers.length > 1;

const page = {
    status: null,
    services: { informer: null, more: false, list: [] },
    digest: null,          // of what the Services were read at
    rest: 0,               // no reload of the Services before
    detail: null,          // the Service in the dialog
    feed: null,            // the events that are followed
    paused: false,
    busy: false,
};


function drawStatus() {
    const { status } = page;
    const select = $("informer");

    document.body.classList.toggle("single", !many());
    put($("about"), `nginx-kube-informer ${status.version}, nginx ${
        status.nginx}, worker ${status.worker}`);
    document.title = `${status.informers.every((i) =>
        i.ready && !i.degraded.length) ? "" : "! "}Kubernetes informer status`;

    select.made ??= new Map();
    arrange(select, select.made, status.informers, (i) => i.name,
            (i) => make("option", { textContent: i.name }), () => {});
    $("informer-label").hidden = !many();
    $("services").hidden = status.informers.length === 0;

    drawInformers();
    drawProblems();
    drawTables();
}


async function refresh() {
    if (page.busy) {
        return;
    }

    page.busy = true;

    try {
        page.status = await read("api/v1/status");
        drawStatus();

        if (page.status.informers.length && !page.paused && !document.hidden) {
            openFeed();
        }

        await refreshServices();

        if (location.hash) {
            await refreshDetail();
        }

        page.read = new Date();
        put($("updated"), `as of ${clock(page.read)}`);
        $("fault").hidden = true;

    } catch (error) {
        put($("fault"), `This page cannot read the status (${error.message}). ${
            page.read ? `What it shows is of ${clock(page.read)}.` : ""}`);
        $("fault").hidden = false;

    } finally {
        page.busy = false;
    }
}


function start() {
    $("controls").hidden = false;

    $("refresh").addEventListener("click", () => {
        page.rest = 0;
        page.digest = null;
        refresh();
    });

    $("pause").addEventListener("click", () => {
        page.paused = !page.paused;
        $("pause").ariaPressed = page.paused;
        tick();
    });

    $("search").addEventListener("input", drawShown);
    $("only").addEventListener("change", drawShown);
    $("services").querySelector("form").addEventListener("submit",
        (event) => event.preventDefault());
    $("informer").addEventListener("change", () => {
        refreshServices();

        if (page.feed) {
            openFeed();
        }
    });

    $("close").addEventListener("click", () => $("detail").close());
    $("detail").addEventListener("close", () => {
        page.detail = null;
        history.replaceState(null, "", location.pathname + location.search);
    });

    addEventListener("hashchange", refreshDetail);
    document.addEventListener("visibilitychange", tick);

    setInterval(tick, PERIOD);
    refresh();
}


function tick() {
    if (!page.paused && !document.hidden) {
        refresh();

    } else {
        closeFeed();
    }
}


start();
