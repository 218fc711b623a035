"use strict";
// Every text of the log reaches the page through textContent or a chart's text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const {log, policies, algorithms, bursts, series, limits, clients} = data;
const $ = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en");
const number = (n) => (n === null ? "too many to count" : whole.format(n));
const share = (part, all) => (all > 0 ? (100 * part) / all : 0);
// The space does not break a line.
const percent = (p) => `${Number.isInteger(p) ? p : p < 0.095 ? p.toFixed(p < 0.0095 ? 3 : 2) : p.toFixed(1).replace(".0", "")}\u00a0%`;
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
  const body = rows.map(([name, ...cells]) => element("tr", {}, element("th", {scope: "row"}, name), ...cells.map((text, n) => element("td", {"data-name": head[n + 1]}, text))));
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

// --- the title, and what to know of the log ---------------------------------------------------------

$("title").textContent = `What each limit would have done to ${log.name.split(", ").map((name) => name.split("/").pop()).join(", ")}`;
document.title = $("title").textContent;
$("about").textContent = `${number(log.requests)} requests of ${number(log.keys)} clients within ${span(log.last_ms - log.first_ms)}, ${log.first} to ${log.last} UTC, replayed: decided again under each limit. Every client has a limit of its own.`;

// Why the log supports no limit; null if it does.
const length = `${number(log.requests)} request${log.requests === 1 ? "" : "s"} within ${span(log.last_ms - log.first_ms)}`;
const unsupported =
  limits.requests === 0 ? "The log has no request that the replay could read, so it recommends no limit."
    : log.bad_lines > log.requests ? "More than half of the log's lines could not be read, so it recommends no limit."
      : log.last_ms === log.first_ms ? "All requests of the log have one time, so it recommends no limit."
        : log.requests < 100 || log.last_ms - log.first_ms < 6e5 ? `The log is too short to recommend a limit: ${length}. Take at least 100 requests and ten minutes, better a week of ordinary days.`
          : null;

// Whether the log has only a few minutes of each hour.
const isSampled = log.minutes_of_hour <= 5 && log.last_ms - log.first_ms > 3 * 36e5;
const sampled = `only ${log.minutes_of_hour === 1 ? "one minute" : `${log.minutes_of_hour} minutes`} of each hour`;

// What is particular about the log: a few words for the first section, and what it means.
function particulars() {
  const all = [];
  const add = (brief, text) => all.push({brief, text});
  if (log.out_of_order > 0) {
    const late = `The log is out of order: ${number(log.out_of_order)} of ${number(log.lines)} lines are older than a line before them, by up to ${span(1000 * log.latest_s)}.`;
    if (log.reorder_s > 0) {
      const other = log.denied_in_file_order === null ? "" : ` In the order of the file, ${first.policy} would refuse ${number(log.denied_in_file_order)} requests instead of ${number(first.denied)}.`;
      add("is out of order", `${late} The replay decided in order of time.${other}`);
      if (log.too_late > 0) add("has lines that came too late", `${number(log.too_late)} lines came more than ${span(1000 * log.reorder_s)} late, so the replay decided them out of order. A longer --reorder puts them in order.`);
    } else {
      add("is out of order", `${late} The replay decided in the order of the file, which refuses more requests than a limiter in front of the server would have.`);
    }
  }
  if (log.whole_seconds) add("has times in whole seconds", "The log's times are whole seconds. The replay takes all requests of one second as made at one instant, so bursts look larger than they were.");
  if (isSampled) add(`has ${sampled}`, `The log has ${sampled}. So it hardly shows what a limit does to somebody who stays longer, nor how the ways to count differ. If lines were left out, it looks burstier than the traffic was.`);
  if (log.bad_lines > 0) add("has lines that are no requests", `${number(log.bad_lines)} of ${number(log.lines)} lines are no requests and were left out.`);
  return all;
}
const doubts = particulars();
$("notes").replaceChildren(...[
  ...doubts.map(({text}) => text),
  "In the replay a refused client does not try again. A real client may.",
  "A client is an address. Many people may share one, behind a company's or a phone network's gateway.",
].map((text) => element("li", {}, text)));
const listed = doubts.map(({brief}) => brief);
$("doubts").replaceChildren(...(listed.length === 0 ? [] : [
  `This log ${listed.length === 1 ? listed[0] : `${listed.slice(0, -1).join(", ")} and ${listed.at(-1)}`}: see `,
  element("a", {href: "#h-first"}, "Where the log misleads"), "."]));

// --- the limit to set -------------------------------------------------------------------------------

// The shares in percent that the slider offers.
const shares = [0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10];
let wanted = 0.2;

// How many a share allows, and the shares that allow different numbers.
function allowed(of, most) {
  return Math.floor((most * limits[of]) / 100 + 1e-9);
}

function stops(of) {
  return shares.filter((most, n) => n === 0 || allowed(of, most) > allowed(of, shares[n - 1]));
}

function refusedShare(of, r, b) {
  return share(limits[`denied_${of}`][r][b], limits[of]);
}

// The most that one client is admitted in any minute: the burst, and each permit that comes back within it.
function mostInAMinute(burst, perSecond) {
  return burst + Math.max(0, Math.ceil(60 * perSecond - 1e-9) - 1);
}

// For each rate the smallest burst of the grid that refuses at most so many percent.
function smallestBursts(of, most) {
  if (unsupported !== null) return [];
  return limits.rates.map((rate, r) => {
    const b = limits.bursts.findIndex((_, b) => refusedShare(of, r, b) <= most);
    return b < 0 ? null : {...rate, r, b, burst: limits.bursts[b], minute: mostInAMinute(limits.bursts[b], rate.per_second)};
  }).filter((limit) => limit !== null);
}

// The limit that admits the fewest requests in its worst minute; of equal ones that which refuses
// less, then the fastest. One that needs long to give a burst again would stop people in ways that
// few logs show.
const againMost = 300;
function pick(all, of) {
  const refused = ({r, b}) => limits[`denied_${of}`][r][b];
  const isBetter = (one, best) => best === null || one.minute < best.minute || (one.minute === best.minute && refused(one) <= refused(best));
  return all.filter((limit) => again(limit) <= againMost).reduce((best, limit) => (isBetter(limit, best) ? limit : best), null);
}

// After how many seconds a client that used its whole burst has it again.
function again({burst, per_second}) {
  return burst / per_second;
}

// "30/min" as a sentence has it.
const units = {s: "second", min: "minute", h: "hour", day: "day"};
function spoken(rate) {
  const [count, unit] = rate.split("/");
  return `${count} ${unit === "h" ? "an" : "a"} ${units[unit]}`;
}

function policyText(limit) {
  return `${limit.text} burst ${limit.burst}`;
}

// "3 of 1,753 clients (0.2 %)". Where few were refused, the count says more than the share.
function ofAll(part, all, what) {
  return `${part === 0 ? "none" : number(part)} of ${number(all)} ${what}${part === 0 ? "" : ` (${percent(share(part, all))})`}`;
}

function robotsAmong(clients, robots) {
  if (clients === 0) return "";
  if (clients === 1 && robots === 1) return ", a robot,";
  if (robots === clients) return clients === 2 ? ", both robots," : ", all robots,";
  if (robots === 0) return limits.robots === 0 ? "" : `, none of the log's ${number(limits.robots)} known robots,`;
  return `, ${number(robots)} of them ${robots === 1 ? "a robot" : "robots"},`;
}

function refuses({r, b}) {
  const [people, robots] = [limits.denied_clients[r][b], limits.denied_robots[r][b]];
  return `${ofAll(people, limits.clients, "clients")}${robotsAmong(people, robots)} and ${ofAll(limits.denied_requests[r][b], limits.requests, "requests")}`;
}

// What a limit does to the robots of the log.
function stopped({r, b}) {
  if (limits.robots === 0) return "";
  const [all, robots] = [limits.denied_clients[r][b], limits.denied_robots[r][b]];
  const others = all > robots ? `, and ${number(all - robots)} ${all - robots === 1 ? "client" : "clients"} that may be people` : "";
  return ` A known robot says so in its user agent. The limit refuses ${ofAll(robots, limits.robots, "known robots")}${others}. A robot that requests slowly passes under every limit that spares people.`;
}

// A line to copy, with its button. The clipboard is missing where the browser does not trust a file; the text can be marked there.
function copied(what, text) {
  const button = element("button", {type: "button"}, "Copy");
  button.setAttribute("aria-label", `Copy ${what}`);
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(button.parentElement.querySelector("code"));
    navigator.clipboard?.writeText(text).then(() => { button.textContent = "Copied"; }, () => {});
  });
  return element("div", {class: "line"}, element("span", {}, what), element("pre", {}, element("code", {}, text)), button);
}

function lines(best) {
  const rate = best.text.replace(/\/(min)?/, (_, min) => (min ? "r/m" : "r/"));
  return [
    copied("In limits.toml, tollbar's rules", `version = 1\n[group.site]\nlimit = "${policyText(best)}"`),
    copied("or in nginx.conf, tollbar's module", `# in http; nginx counts the burst after the first request\ntollbar_zone $tollbar_client zone=site:10m rate=${rate} burst=${best.burst - 1};\n# in a location\ntollbar zone=site nodelay;`),
  ];
}

function wish() {
  const of = new FormData($("wish")).get("of");
  const at = stops(of);
  const n = at.findLastIndex((share) => share <= wanted);
  $("most").setAttribute("max", String(at.length - 1));
  $("most").value = String(n);
  const most = at[n];
  const found = smallestBursts(of, most);
  const best = pick(found, of);
  const count = allowed(of, most);
  // Without a limit to propose the slider would move nothing.
  $("wish").hidden = unsupported !== null;
  $("most-shown").textContent = count === 0 ? `none of ${number(limits[of])}` : `${number(count)} of ${number(limits[of])} (${percent(share(count, limits[of]))})`;
  $("most").setAttribute("aria-valuetext", `${$("most-shown").textContent} ${of}`);
  $("answer").replaceChildren(...(best
    ? [element("strong", {}, policyText(best)), ` would have refused ${refuses(best)}.`]
    : [unsupported ?? `No limit of this page refuses so few of the ${of}.`]));
  $("means").textContent = best
    ? `The tightest limit that refuses so few: a client may make ${number(best.burst)} request${best.burst === 1 ? "" : "s"} at once, then ${spoken(best.text)}, at most ${number(best.minute)} in any minute, and ${best.burst === 1 ? "one" : `${number(best.burst)} at once`} again after ${span(1000 * Math.max(1, again(best)))}. A request beyond that is answered 429 Too Many Requests. A tighter limit would refuse more of the ${of}, or keep a client longer than ${span(1000 * againMost)} without its burst.${stopped(best)}`
    : "";
  $("lines").replaceChildren(...(best ? lines(best) : []));
  map(of, found, best);
  const row = (limit) => [limit.text, number(limit.burst), ofAll(limits.denied_clients[limit.r][limit.b], limits.clients, "clients"),
    ofAll(limits.denied_requests[limit.r][limit.b], limits.requests, "requests"), number(limit.minute)];
  table($("curve-table"), ["rate", "smallest burst", "clients refused", "requests refused", "most in any minute"], found.map(row));
  clientTable(best);
}

// The cell of the grid that is nearest to a policy; null if the policy has no rate.
function nearest({per_second, burst}) {
  if (!(per_second > 0) || !(burst > 0)) return null;
  const closest = (all, value) => all.reduce((best, one, n) => (Math.abs(Math.log(one / value)) < Math.abs(Math.log(all[best] / value)) ? n : best), 0);
  const [r, b] = [closest(limits.rates.map((rate) => rate.per_second), per_second), closest(limits.bursts, burst)];
  const isExact = Math.abs(limits.rates[r].per_second / per_second - 1) < 1e-9 && limits.bursts[b] === burst;
  return {text: limits.rates[r].text, burst: limits.bursts[b], isExact};
}

function map(of, found, best) {
  const cells = limits.rates.flatMap((rate, r) => limits.bursts.map((burst, b) => ({rate: rate.text, burst: String(burst), r, b, refused: refusedShare(of, r, b)})));
  const at = {x: "text", y: (limit) => String(limit.burst)};
  const mine = nearest(first);
  draw($("map"), `Share of the ${of} that each rate and burst would have refused`, (width) => ({
    height: width < 500 ? 320 : 420, marginLeft: 48, marginBottom: 60, padding: 0.08, color: {type: "identity"},
    x: {label: "rate →", domain: limits.rates.map((rate) => rate.text), ticks: limits.rates.map((rate) => rate.text).filter((_, r) => width >= 600 || r % 3 === 0), tickRotate: -55},
    y: {label: "↑ burst", domain: limits.bursts.map(String).reverse(), ticks: limits.bursts.map(String).filter((_, b) => width >= 600 || b % 2 === 0)},
    marks: [
      Plot.cell(cells, {x: "rate", y: "burst", fill: (cell) => shade(cell.refused)}),
      Plot.cell(found, {...at, fill: "none", stroke: "var(--pick)", strokeWidth: 1.5}),
      ...(best ? [Plot.dot([best], {...at, fill: "var(--pick)", r: 4})] : []),
      ...(mine ? [Plot.text([mine], {...at, text: () => "✕", fontSize: 15, fontWeight: 700, fill: "var(--ink)", stroke: "var(--card)", strokeWidth: 3})] : []),
      Plot.tip(cells, Plot.pointer({x: "rate", y: "burst", lineWidth: width < 500 ? 9 : 20, fill: "var(--card)", stroke: "var(--line)", title: (cell) => `${cell.rate} burst ${cell.burst}\nrefuses ${refuses(cell)}`})),
    ],
  }));
  const item = (...parts) => element("span", {class: "item"}, ...parts);
  const swatch = (p) => item(element("span", {class: "swatch", style: `background:${shade(p)}`}), ` ${percent(p)}`);
  $("legend").replaceChildren(`Share of the ${of} refused: `, ...[0, 0.1, 1, 10, 100].map(swatch),
    ...(found.length > 0 ? [item("▢ the smallest burst that refuses so few"), item("● proposed above")] : []),
    ...(mine ? [item(`✕ ${mine.isExact ? first.policy : `nearest to ${first.policy}`}`)] : []));
  table($("map-table"), ["burst", ...limits.rates.map((rate) => rate.text)],
    limits.bursts.map((burst, b) => [String(burst), ...limits.rates.map((_, r) => percent(refusedShare(of, r, b)))]));
}

// Low shares differ by colour, too: a limit that refuses 0.1 % is not one that refuses 1 %.
function shade(refused) {
  const strength = refused === 0 ? 0 : Math.round(22 + 78 * Math.min(1, Math.max(0, (Math.log10(refused) + 2) / 4)));
  return `color-mix(in oklab, var(--deny) ${strength}%, var(--low))`;
}
$("most").addEventListener("input", () => {
  wanted = stops(new FormData($("wish")).get("of"))[Number($("most").value)];
});
$("wish").addEventListener("input", wish);
$("wish").addEventListener("submit", (event) => event.preventDefault());
$("yours").replaceChildren(...(first.requests === 0 ? [] : [element("strong", {}, first.policy), `, which this replay tried${policies.length > 1 ? " first" : ""}, would have refused ${ofAll(first.keys_denied, first.keys, "clients")} and ${ofAll(first.denied, first.requests, "requests")}.`]));

// --- over time --------------------------------------------------------------------------------------

$("policies").replaceChildren(...policies.map((policy, n) => {
  const input = element("input", {type: "radio", name: "policy", value: String(n)});
  input.checked = n === 0;
  return element("label", {}, input, policy.policy);
}));
$("policies").hidden = policies.length < 2;

// The bars. The first and the last one are as wide as the part of their bin that the log covers; a
// part of less than a quarter joins its neighbour, so that a moment does not look like a peak. A
// log of some minutes of each hour counts as whole hours, so that its last hour looks like the others.
function slices(denied) {
  const hour = 36e5;
  const [begin, end] = isSampled ? [Math.floor(log.first_ms / hour) * hour, (Math.floor(log.last_ms / hour) + 1) * hour]
    : [log.first_ms, log.last_ms + (log.whole_seconds ? 1000 : 1)];
  const all = series.requests.map((requests, bin) => ({
    from: Math.max(begin, series.start_ms + bin * series.width_ms),
    to: Math.min(end, series.start_ms + (bin + 1) * series.width_ms), requests, denied: denied[bin],
  }));
  const join = (a, b) => ({from: a.from, to: b.to, requests: a.requests + b.requests, denied: a.denied + b.denied});
  const isShort = (slice) => slice.to - slice.from < series.width_ms / 4;
  if (all.length > 1 && isShort(all[0])) all.splice(0, 2, join(all[0], all[1]));
  if (all.length > 1 && isShort(all.at(-1))) all.splice(-2, 2, join(all.at(-2), all.at(-1)));
  return all;
}

const two = (n) => String(n).padStart(2, "0");
const clock = (date) => `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
// Round steps of time in seconds, up to weeks.
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

// The times of the axis: multiples of the first step at which the labels have `room` pixels each.
function ticks(from, to, width, room) {
  const most = Math.max(1, Math.floor(width / room));
  const fits = (step) => (to - from) / (1000 * step) <= most;
  const step = 1000 * (steps.find(fits) ?? 604800 * Math.ceil((to - from) / (6048e5 * most)));
  const first = Math.ceil(from / step);
  return Array.from({length: Math.floor(to / step) - first + 1}, (_, n) => new Date((first + n) * step));
}

const day = new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "short", timeZone: "UTC"});

function overTime() {
  const n = Number(new FormData($("policies")).get("policy"));
  const [unit, name] = series.width_ms < 6e4 ? [1e3, "second"] : series.width_ms < 36e5 ? [6e4, "minute"] : [36e5, "hour"];
  const all = slices(series.denied[n]);
  const bins = all.flatMap(({from, to, requests, denied}) => {
    // Of a log of some minutes of each hour nobody knows what the other minutes had.
    const [x1, x2, per] = [new Date(from), new Date(to), isSampled ? 1 : unit / (to - from)];
    return [{x1, x2, y1: 0, y2: (requests - denied) * per, what: "admitted"}, {x1, x2, y1: (requests - denied) * per, y2: requests * per, what: "refused"}];
  }).filter((bin) => bin.y2 > bin.y1);
  const label = (date) => (clock(date) === "00:00" && date.getUTCSeconds() === 0 ? day.format(date) : clock(date) + (series.width_ms < 6e4 && date.getUTCSeconds() > 0 ? `:${two(date.getUTCSeconds())}` : ""));
  draw($("time"), `Requests over time, ${number(policies[n].allowed)} admitted and ${number(policies[n].denied)} refused by ${policies[n].policy}`, (width) => ({
    height: 240, marginLeft: 48, marginBottom: 40, x: {type: "utc", label: "UTC", ticks: ticks(all[0]?.from ?? 0, all.at(-1)?.to ?? 0, width - 68, width >= 500 ? 100 : series.width_ms < 6e4 ? 60 : 50), tickFormat: label}, y: {label: isSampled ? "↑ requests" : `↑ requests a ${name}`, grid: true, ticks: 5},
    marks: [
      Plot.rectY(bins, {x1: "x1", x2: "x2", y1: "y1", y2: "y2", fill: (bin) => (bin.what === "refused" ? "var(--deny)" : "var(--pass)"), insetRight: 0.5, inset: 0}),
      Plot.ruleY([0], {stroke: "var(--line)"}),
    ],
    color: {type: "identity"},
  }));
  $("time-help").replaceChildren(element("span", {style: "color:var(--pass)"}, "■ "), `${number(policies[n].allowed)} admitted, `,
    element("span", {style: "color:var(--deny)"}, "■ "), `${number(policies[n].denied)} refused by ${policies[n].policy}. ${isSampled ? `The log has ${sampled}: a bar counts the requests of ${log.minutes_of_hour === 1 ? "that minute" : "those minutes"}` : `A bar is ${span(series.width_ms)}`}.`);
}
$("policies").addEventListener("input", overTime);

// --- beside each other ------------------------------------------------------------------------------

// What the names of the policy language mean to somebody who runs a site.
const meanings = {
  "gcra": "A bucket that fills evenly (token bucket). The default.",
  "interval": "A bucket that is filled up once a period.",
  "fixed-window": "Counts from zero at every full period of the clock. It may admit twice the limit around its ends.",
  "weighted-window": "Counts the current period and a part of the one before: the part that is less than a period ago.",
  "sliding-window": "Counts the last period in ten slices.",
  "sliding-log": "Counts the last period request by request.",
};
const algorithmOf = (one) => /algo (\S+)/.exec(one.policy)?.[1] ?? "gcra";

function outcomes(into, all, what, name, head = "limit") {
  const most = Math.max(...all.map((one) => share(one.denied, one.requests)), 0.001);
  const rows = all.map((one) => {
    const bar = all.length === 1 ? "" : element("span", {class: "bar", style: `width:${(100 * share(one.denied, one.requests)) / most}%`});
    return [name(one), element("span", {}, `${number(one.keys_denied)} (${percent(share(one.keys_denied, one.keys))})`), element("span", {}, `${number(one.denied)} (${percent(share(one.denied, one.requests))})`, bar), number(one.most_in_period)];
  });
  table(into, [head, "clients refused", "requests refused", `most that one client was admitted within ${what}`], rows);
}

function asked(one) {
  const kind = algorithmOf(one);
  return /algo /.test(one.policy) ? element("abbr", {title: meanings[kind] ?? kind, tabindex: "0"}, one.policy) : one.policy;
}
const unit = units[/^\d+\/(\S+)/.exec(first.policy)?.[1]];
const period = unit ? `${unit === "hour" ? "an" : "a"} ${unit}` : "a period";
const hasOnePeriod = policies.every((one) => units[/^\d+\/(\S+)/.exec(one.policy)?.[1]] === unit);
outcomes($("tried"), policies, hasOnePeriod ? period : "its period", asked);
$("bursts-help").append(` ${first.policy} has a burst of ${number(first.burst)}.`);
if (isSampled) $("algorithms-help").append(` This log has ${sampled}, so ways that differ in what they do over several minutes look alike.`);
outcomes($("bursts"), bursts, period, (one) => one.policy);
outcomes($("algorithms"), algorithms, period, (one) => {
  const kind = algorithmOf(one);
  return element("span", {}, element("span", {}, one.policy), element("small", {}, meanings[kind] ?? kind));
});

// --- clients ----------------------------------------------------------------------------------------

function strip(client) {
  const bins = series.requests.length;
  const most = Math.max(...client.strip.map(([, requests]) => requests));
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const set = (to, all) => Object.entries(all).forEach(([name, value]) => to.setAttribute(name, value));
  set(picture, {class: "strip", viewBox: `0 0 ${bins} 22`, preserveAspectRatio: "none", role: "img", "aria-label": `${number(client.requests)} requests in ${client.strip.length} of ${bins} stretches of time, ${number(client.denied)} refused`});
  for (const [bin, requests, denied] of client.strip) {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const strength = Math.round(60 + 40 * Math.sqrt(requests / most));
    // Where any request was refused, the stretch shows it.
    const hot = denied === 0 ? 0 : Math.round(50 + (50 * denied) / requests);
    rect.setAttribute("style", `fill:color-mix(in srgb, color-mix(in srgb, var(--deny) ${hot}%, var(--pass)) ${strength}%, var(--low))`);
    set(rect, {x: bin, y: 0, width: Math.max(1, bins / 160), height: 22});
    picture.append(rect);
  }
  return picture;
}

// The clients, with what the proposed limit does to each.
function clientTable(best) {
  $("clients-help").textContent = clients.length === 0 ? `${first.policy} would have refused no client.`
    : `The ${clients.length} clients that ${first.policy} refuses most, of ${number(first.keys_denied)}. A robot that fetches a whole site may well be refused. An address that requests pages all day may be an office. The strip is the time from left to right, from ${log.first} to ${log.last} UTC: stronger with more requests, red where ${first.policy} refused some.`;
  if (clients.length === 0) return;
  const head = ["client", "requests", `refused by ${first.policy}`, ...(best ? [`with ${policyText(best)}`] : []), `what ${first.policy} refused most`, "when"];
  const rows = clients.map((client) => {
    const name = element("th", {scope: "row"}, client.key, ...(client.robot ? [element("span", {class: "mark"}, "robot")] : []));
    const cell = (text, attributes = {}) => element("td", attributes, text);
    const paths = element("td", {class: "left"}, ...client.paths.map(({path, denied}) => element("span", {class: "path", title: path}, `${number(denied)} × ${path}`)));
    const passes = best && client.bursts_needed[best.r] <= best.burst;
    return element("tr", {}, name, cell(number(client.requests), {"data-name": head[1]}), cell(`${number(client.denied)} (${percent(share(client.denied, client.requests))})`, {"data-name": head[2]}),
      ...(best ? [cell(passes ? "all pass" : "some refused", {"data-name": head[3], ...(passes ? {} : {class: "hurt"})})] : []), paths, cell(strip(client), {class: "left"}));
  });
  $("clients").replaceChildren(element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {scope: "col"}, text)))), element("tbody", {}, ...rows));
}

function drawAll() {
  wish();
  overTime();
}
drawAll();
let drawn = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth !== drawn) {
    drawn = window.innerWidth;
    drawAll();
  }
});
