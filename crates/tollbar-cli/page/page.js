"use strict";
// Every text of the log reaches the page through textContent or a chart's text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const {log, policies, algorithms, bursts, series, limits, clients} = data;
const $ = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en");
const number = (n) => (n === null ? "too many to count" : whole.format(n));
const share = (part, all) => (all > 0 ? (100 * part) / all : 0);
const percent = (p) => `${p === 0 || p === 100 ? p : p < 0.095 ? p.toFixed(2) : p.toFixed(1)} %`;
const first = policies[0];

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function span(ms) {
  const units = [[864e5, "day"], [36e5, "hour"], [6e4, "minute"], [1e3, "second"]];
  const [unit, name] = units.find(([unit]) => ms >= unit) ?? [1e3, "second"];
  const n = ms >= 10 * unit ? Math.round(ms / unit) : Math.round((10 * ms) / unit) / 10;
  return `${n} ${name}${n === 1 ? "" : "s"}`;
}

function table(into, head, rows) {
  const header = element("tr", {}, ...head.map((text) => element("th", {scope: "col"}, text)));
  const body = rows.map(([name, ...cells]) => element("tr", {}, element("th", {scope: "row"}, name), ...cells.map((text) => element("td", {}, text))));
  into.replaceChildren(element("thead", {}, header), element("tbody", {}, ...body));
}

// A chart is one picture. Its label describes it to a screen reader, and its table or text has the numbers.
function draw(into, label, options) {
  const width = Math.max(280, into.clientWidth);
  const chart = Plot.plot({width, marginTop: 24, style: {fontSize: "12px"}, ...options(width)});
  for (const part of chart.querySelectorAll("[aria-label], [aria-description]")) {
    part.removeAttribute("aria-label");
    part.removeAttribute("aria-description");
  }
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", label);
  into.replaceChildren(chart);
}

// --- in short, and what to know before reading on ---------------------------------------------------

$("title").textContent = `What each limit would have done to ${log.name.split(", ").map((name) => name.split("/").pop()).join(", ")}`;
document.title = $("title").textContent;
$("about").textContent = `${number(log.requests)} requests of ${number(log.keys)} clients within ${span(log.last_ms - log.first_ms)}, ${log.first} to ${log.last} UTC. Every client has a limit of its own.`;

function tile(value, what) {
  return element("div", {}, element("dt", {}, what), element("dd", {}, value));
}

// Why the log supports no limit; null if it does.
const unsupported =
  limits.requests === 0 ? "The log has no request that the replay could read"
    : log.last_ms === log.first_ms ? "All requests of the log have one time"
      : log.bad_lines > log.requests ? "More than half of the log's lines could not be read"
        : null;
const smallest = pick(smallestBursts("requests", 0.1));
$("tiles").replaceChildren(
  tile(percent(share(first.denied, first.requests)), `of the requests refused by ${first.policy}`),
  tile(percent(share(first.keys_denied, first.keys)), "of the clients had a request refused by it"),
  tile(number(log.most_in_a_minute), `requests within a minute, the most of one client${log.most_in_a_minute_key ? ` (${log.most_in_a_minute_key})` : ""}`),
  tile(smallest ? policyText(smallest) : "none", "the smallest limit that refuses at most 0.1 % of the requests"));

function notes() {
  const all = [];
  if (log.out_of_order > 0) {
    const late = `The log is out of order: ${number(log.out_of_order)} of ${number(log.lines)} lines are older than a line before them, by up to ${span(1000 * log.latest_s)}.`;
    if (log.reorder_s > 0) {
      const other = log.denied_in_file_order === null ? "" : ` In the order of the file, ${first.policy} would refuse ${number(log.denied_in_file_order)} requests instead of ${number(first.denied)}: a limiter never admits more because time went back.`;
      all.push(`${late} The replay decided in order of time.${other}`);
      if (log.too_late > 0) all.push(`${number(log.too_late)} lines came more than ${span(1000 * log.reorder_s)} late, so the replay decided them out of order. A longer --reorder puts them in order.`);
    } else {
      all.push(`${late} The replay decided in the order of the file, which refuses more requests than a limiter in front of the server would have.`);
    }
  }
  if (log.whole_seconds) all.push("The log's times are whole seconds. The replay takes all requests of one second as made at one instant, so bursts look larger than they were.");
  if (log.minutes_of_hour <= 5 && log.last_ms - log.first_ms > 3 * 36e5) all.push(`All times fall into the same ${log.minutes_of_hour === 1 ? "minute" : `${log.minutes_of_hour} minutes`} of the hour. So this log cannot show how window algorithms differ. If lines were left out, it looks burstier than the traffic was.`);
  if (log.bad_lines > 0) all.push(`${number(log.bad_lines)} of ${number(log.lines)} lines are no requests and were left out.`);
  all.push("In the replay a refused client does not try again. A real client may.");
  all.push("A client is an address. Many people may share one, behind a company's or a phone network's gateway.");
  return all;
}
$("notes").replaceChildren(...notes().map((text) => element("li", {}, text)));

// --- the smallest limit -----------------------------------------------------------------------------

function refusedShare(of, rate, burst) {
  return of === "clients" ? share(limits.denied_clients[rate][burst], limits.clients) : share(limits.denied_requests[rate][burst], limits.requests);
}

// For each rate the smallest burst of the grid that refuses at most so many percent.
function smallestBursts(of, most) {
  if (unsupported !== null) return [];
  return limits.rates.map((rate, r) => {
    const b = limits.bursts.findIndex((_, b) => refusedShare(of, r, b) <= most);
    return b < 0 ? null : {...rate, r, b, burst: limits.bursts[b], refused: refusedShare(of, r, b), minute: limits.bursts[b] + 60 * rate.per_second};
  }).filter((limit) => limit !== null);
}

// The limit that admits the fewest requests in its worst minute; of two equal ones the faster.
function pick(all) {
  return all.reduce((best, limit) => (best === null || limit.minute <= best.minute ? limit : best), null);
}

function policyText(limit) {
  return `${limit.text} burst ${limit.burst}`;
}

function wish() {
  const most = Number($("most").value) / 10;
  const of = new FormData($("wish")).get("of");
  const found = smallestBursts(of, most);
  const best = pick(found);
  $("most-shown").textContent = percent(most);
  $("most").setAttribute("aria-valuetext", percent(most));
  const answer = best
    ? [element("strong", {}, policyText(best)), ` refuses ${percent(best.refused)} of the ${of}. A client may make ${number(best.burst)} requests at once, then ${best.text.replace("/", " per ")}: at most ${number(Math.floor(best.minute))} in any minute. Requests above that are answered 429 Too Many Requests. To set it, write `,
      element("code", {}, `limit = "${policyText(best)}"`), " in a rules file, or in nginx ", element("code", {}, `rate=${best.text.replace(/\/(min)?/, (_, min) => (min ? "r/m" : "r/"))}`),
      " in tollbar_zone and ", element("code", {}, `burst=${best.burst - 1} nodelay`), " in tollbar, because nginx counts the burst beyond the first request."]
    : [unsupported === null ? `No limit of this grid refuses so few of the ${of}.` : `${unsupported}, so it recommends no limit.`];
  $("answer").replaceChildren(...answer);
  draw($("curve"), `Smallest burst for each rate that refuses at most ${percent(most)} of the ${of}`, (width) => ({
    height: 260, marginLeft: 48, marginBottom: 40, marginRight: 24,
    x: {type: "log", domain: [limits.rates[0].per_second, limits.rates.at(-1).per_second], label: "rate, requests per second →", ticks: width < 500 ? 4 : 8, tickFormat: "~g"},
    y: {type: "log", label: "↑ smallest burst", domain: [1, 1000], ticks: 4, tickFormat: "~g", grid: true},
    marks: [
      Plot.line(found, {x: "per_second", y: "burst", stroke: "var(--pass)", strokeWidth: 2.5, curve: "step-after"}),
      Plot.dot(found, {x: "per_second", y: "burst", fill: "var(--pass)", r: 3.5}),
      ...(best ? [Plot.dot([best], {x: "per_second", y: "burst", stroke: "var(--pick)", strokeWidth: 2.5, r: 9}),
        Plot.text([best], {x: "per_second", y: "burst", text: policyText, dy: -18, fill: "var(--ink)", stroke: "var(--card)", strokeWidth: 5, fontWeight: 650, textAnchor: best.r > 14 ? "end" : best.r < 4 ? "start" : "middle"})] : []),
    ],
  }));
  table($("curve-table"), ["rate", "smallest burst", `${of} refused`, "most in any minute"],
    found.map((limit) => [limit.text, number(limit.burst), percent(limit.refused), number(Math.floor(limit.minute))]));
  map(of, found);
}

function map(of, found) {
  const cells = limits.rates.flatMap((rate, r) => limits.bursts.map((burst, b) => ({rate: rate.text, burst: String(burst), refused: refusedShare(of, r, b)})));
  const shade = ({refused}) => (refused === 0 ? "var(--low)" : `color-mix(in srgb, var(--deny) ${Math.round(15 + 85 * Math.sqrt(refused / 100))}%, var(--low))`);
  draw($("map"), `Share of the ${of} that each rate and burst would have refused`, (width) => ({
    height: width < 500 ? 320 : 420, marginLeft: 48, marginBottom: 60, padding: 0.08, color: {type: "identity"},
    x: {label: "rate →", domain: limits.rates.map((rate) => rate.text), ticks: limits.rates.map((rate) => rate.text).filter((_, r) => width >= 600 || r % 3 === 0), tickRotate: -55},
    y: {label: "↑ burst", domain: limits.bursts.map(String).reverse(), ticks: limits.bursts.map(String).filter((_, b) => width >= 600 || b % 2 === 0)},
    marks: [
      Plot.cell(cells, {x: "rate", y: "burst", fill: shade}),
      Plot.cell(found, {x: "text", y: (limit) => String(limit.burst), fill: "none", stroke: "var(--pick)", strokeWidth: 1.5}),
      Plot.tip(cells, Plot.pointer({x: "rate", y: "burst", fill: "var(--card)", stroke: "var(--line)", title: (cell) => `${cell.rate} burst ${cell.burst}\nrefuses ${percent(cell.refused)} of the ${of}`})),
    ],
  }));
  table($("map-table"), ["burst", ...limits.rates.map((rate) => rate.text)],
    limits.bursts.map((burst, b) => [String(burst), ...limits.rates.map((_, r) => percent(refusedShare(of, r, b)))]));
}
$("wish").addEventListener("input", wish);
$("wish").addEventListener("submit", (event) => event.preventDefault());

// --- over time --------------------------------------------------------------------------------------

$("policies").replaceChildren(...policies.map((policy, n) => {
  const input = element("input", {type: "radio", name: "policy", value: String(n)});
  input.checked = n === 0;
  return element("label", {}, input, policy.policy);
}));

function overTime() {
  const n = Number(new FormData($("policies")).get("policy"));
  const bins = series.requests.flatMap((requests, bin) => {
    const [x1, x2] = [0, 1].map((end) => new Date(series.start_ms + (bin + end) * series.width_ms));
    const denied = series.denied[n][bin];
    return [{x1, x2, y1: 0, y2: requests - denied, what: "admitted"}, {x1, x2, y1: requests - denied, y2: requests, what: "refused"}];
  }).filter((bin) => bin.y2 > bin.y1);
  draw($("time"), `Requests over time, ${number(policies[n].allowed)} admitted and ${number(policies[n].denied)} refused by ${policies[n].policy}`, (width) => ({
    height: 240, marginLeft: 48, marginBottom: 34, x: {type: "utc", label: null, ticks: width < 500 ? 4 : 9}, y: {label: "↑ requests", grid: true, ticks: 5},
    marks: [
      Plot.rectY(bins, {x1: "x1", x2: "x2", y1: "y1", y2: "y2", fill: (bin) => (bin.what === "refused" ? "var(--deny)" : "var(--pass)"), insetRight: 0.5, inset: 0}),
      Plot.ruleY([0], {stroke: "var(--line)"}),
    ],
    color: {type: "identity"},
  }));
  $("time-help").replaceChildren(element("span", {style: "color:var(--pass)"}, "■ "), `${number(policies[n].allowed)} admitted, `,
    element("span", {style: "color:var(--deny)"}, "■ "), `${number(policies[n].denied)} refused. A bar is ${span(series.width_ms)}.`);
}
$("policies").addEventListener("input", overTime);

// --- beside each other ------------------------------------------------------------------------------

const outcomes = (all) => all.map((one) => [one.policy, number(one.denied), percent(share(one.denied, one.requests)), number(one.keys_denied), percent(share(one.keys_denied, one.keys)), number(one.most_in_period)]);
const outcomeHead = ["policy", "requests refused", "share", "clients refused", "share", "most in a period"];
table($("tried"), outcomeHead, outcomes(policies));
table($("algorithms-table"), outcomeHead, outcomes(algorithms));

function bars(into, label, all, name) {
  const rows = all.map((one) => ({name: name(one), share: share(one.denied, one.requests), shown: percent(share(one.denied, one.requests))}));
  draw(into, label, (width) => ({
    height: 40 + 30 * rows.length, marginLeft: width < 500 ? 110 : 140, marginRight: 56, marginBottom: 12,
    x: {axis: null, domain: [0, Math.max(...rows.map((row) => row.share), 0.001)]}, y: {label: null, domain: rows.map((row) => row.name)},
    marks: [
      Plot.barX(rows, {x: "share", y: "name", fill: "var(--deny)", insetTop: 3, insetBottom: 3}),
      Plot.text(rows, {x: "share", y: "name", text: "shown", textAnchor: "start", dx: 6, fill: "var(--ink)"}),
    ],
  }));
}

const algorithmOf = (one) => /algo (\S+)/.exec(one.policy)?.[1] ?? "gcra";
const burstOf = (one) => `burst ${/burst (\d+)/.exec(one.policy)?.[1] ?? /^\d+/.exec(one.policy)[0]}`;
$("bursts-help").textContent = `${first.policy.split(" ")[0]} as a token bucket: ${bursts.map((one) => `${burstOf(one)} refuses ${percent(share(one.denied, one.requests))}`).join(", ")} of the requests. A burst lets a page load its parts at once; the rate for longer times stays the same.`;

// --- clients ----------------------------------------------------------------------------------------

function strip(client) {
  const bins = series.requests.length;
  const most = Math.max(...client.strip.map(([, requests]) => requests));
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const set = (to, all) => Object.entries(all).forEach(([name, value]) => to.setAttribute(name, value));
  set(picture, {class: "strip", viewBox: `0 0 ${bins} 22`, preserveAspectRatio: "none", role: "img", "aria-label": `${number(client.requests)} requests in ${client.strip.length} of ${bins} stretches of time, ${number(client.denied)} refused`});
  for (const [bin, requests, denied] of client.strip) {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const strength = Math.round(35 + 65 * Math.sqrt(requests / most));
    const hot = Math.round((100 * denied) / requests);
    rect.setAttribute("style", `fill:color-mix(in srgb, color-mix(in srgb, var(--deny) ${hot}%, var(--pass)) ${strength}%, var(--low))`);
    set(rect, {x: bin, y: 0, width: Math.max(1, bins / 160), height: 22});
    picture.append(rect);
  }
  return picture;
}

$("clients-help").textContent = clients.length === 0 ? `${first.policy} would have refused no client.`
  : `The ${clients.length} clients that ${first.policy} refuses most, of ${number(first.keys_denied)}. The strip is the time from left to right: darker with more requests, red where they were refused.`;
if (clients.length > 0) {
  const head = ["client", "requests", "refused", "burst needed", "what was refused most", "when"];
  const rows = clients.map((client) => {
    const name = element("th", {scope: "row"}, client.key, ...(client.robot ? [element("span", {class: "mark"}, "robot")] : []));
    const cell = (text, attributes = {}) => element("td", attributes, text);
    const paths = element("td", {class: "left"}, ...client.paths.map(({path, denied}) => element("span", {class: "path", title: path}, `${number(denied)} × ${path}`)));
    return element("tr", {}, name, cell(number(client.requests), {"data-name": "requests"}), cell(`${number(client.denied)} (${percent(share(client.denied, client.requests))})`, {"data-name": "refused"}),
      cell(client.burst_needed === null ? "–" : number(client.burst_needed), {"data-name": "burst needed"}), paths, cell(strip(client), {class: "left"}));
  });
  $("clients").replaceChildren(element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {scope: "col"}, text)))), element("tbody", {}, ...rows));
}

function drawAll() {
  wish();
  overTime();
  bars($("algorithms"), "Share of the requests refused under each algorithm", algorithms, algorithmOf);
  bars($("bursts"), "Share of the requests refused with each burst", bursts, burstOf);
}
drawAll();
let drawn = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth !== drawn) {
    drawn = window.innerWidth;
    drawAll();
  }
});
