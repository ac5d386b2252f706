"use strict";
// The explorer: pick a demonstration, take it apart, and see what the teacher would do with more or less of each
// feature. Names can come from anyone's data, so everything is written as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const names = data.action_names;
  const nFeatures = data.features.scales.length;
  const nColumns = data.observations.lows.length;
  const nRows = data.rows.length;
  const MISSING = 255; // the code of an entry that was not observed
  const N_COLOURS = 7;
  const N_COLUMNS_SHOWN = 16; // of observations that are drawn as bars
  const N_PANELS_SHOWN = 6; // of an observation that is drawn as images or curves
  const N_UNSORTED = 8; // with more sliders than this, those of absent features are folded away
  const N_GAPLESS = 300; // more marks than this on the timeline leave no room for gaps between them
  const PAUSE = 600; // milliseconds without a change before a screen reader is told
  const POSITIVE = [0, 114, 178], NEGATIVE = [213, 94, 0], UNKNOWN = [128, 128, 128];

  // --- small tools ---------------------------------------------------------------------------------------------

  const SVG = "http://www.w3.org/2000/svg";
  const SVG_TAGS = new Set(["svg", "rect", "line", "path", "title"]);

  function make(tag, attributes = {}, ...children) {
    const node = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children); // strings become text
    return node;
  }

  function makeName(name, shown = name) {
    // bdi: a name written from right to left must not turn the line around
    return make("span", { class: "name", title: name }, make("bdi", {}, shown));
  }

  // Words that all names start with; a name that must fit on one line leaves them out.
  const sharedWords = (() => {
    let shared = names.length > 1 ? names[0] : "";
    while (!names.every((name) => name.startsWith(shared))) shared = shared.slice(0, -1);
    return shared.slice(0, shared.lastIndexOf(" ") + 1);
  })();

  function shorten(name) {
    return sharedWords.length > 8 && name.startsWith(sharedWords) ? `…${name.slice(sharedWords.length)}` : name;
  }

  function decode(base64) {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  }

  const places = (number, n = 2) => number.toFixed(n).replace("-", "−");
  const short = (number) => String(Number(number.toPrecision(3))).replace("-", "−");
  const percent = (share) => `${100 * share}%`;

  // --- the model -----------------------------------------------------------------------------------------------

  // The same steps as whyact.model.action_probabilities and multiplied_probabilities, in double precision. What is not
  // available is left out before any power or exponential: beside it, what is left might underflow.
  function actionProbabilities(substates) {
    const available = data.available ? data.available[picked] : names.map(() => 1);
    return data.combination === "product" ? multiplyPolicies(substates, available) : mixPolicies(substates, available);
  }

  // The mixture of policies, sum_k s_k phi_k, normalised, to the power of the decisiveness; uniform without a feature.
  function mixPolicies(substates, available) {
    const vote = (u) => substates.reduce((sum, substate, k) => sum + substate * data.policies[k][u], 0);
    const votes = names.map((_, u) => (available[u] ? vote(u) : 0));
    const mixture = normalise(votes.some((weight) => weight > 0) ? votes : available);
    if (data.decisiveness === 1) return mixture;
    const largest = Math.max(...mixture);
    return normalise(mixture.map((probability) => Math.pow(probability / largest, data.decisiveness)));
  }

  // The product of policies: log odds add up, starting from those of the base policy.
  function multiplyPolicies(substates, available) {
    const tally = (u) => substates.reduce((sum, substate, k) => sum + substate * data.log_odds[k][u], data.base[u]);
    const tallies = names.map((_, u) => (available[u] ? tally(u) : -Infinity));
    const largest = Math.max(...tallies);
    return normalise(tallies.map((log) => Math.exp(log - largest)));
  }

  function normalise(weights) {
    const sum = weights.reduce((a, b) => a + b, 0);
    return weights.map((weight) => weight / sum);
  }

  const features = (() => {
    const bytes = new DataView(decode(data.features.data).buffer);
    return data.features.scales.map((scale, k) =>
      Float64Array.from({ length: nColumns }, (_, d) => scale * bytes.getInt16(2 * (k * nColumns + d), true)));
  })();

  const codes = decode(data.observations.data);

  function observation(i) {
    return Float64Array.from({ length: nColumns }, (_, d) => {
      const code = codes[i * nColumns + d];
      return code === MISSING ? NaN : data.observations.lows[d] + data.observations.steps[d] * code;
    });
  }

  function sumOfFeatures(substates) {
    const sum = new Float64Array(nColumns);
    substates.forEach((substate, k) => {
      if (substate) features[k].forEach((entry, d) => { sum[d] += substate * entry; });
    });
    return sum;
  }

  const minus = (a, b) => a.map((value, d) => value - b[d]);
  const times = (feature, substate) => feature.map((entry) => substate * entry);

  // One scale for all pictures of a demonstration, so that parts and sums can be compared.
  let fullColour = 1;

  function findLargest(...pictures) {
    let largest = 0;
    for (const values of pictures) for (const value of values) largest = Math.max(largest, Math.abs(value) || 0);
    return largest || 1;
  }

  // --- pictures of an observation, a part, or the rest ---------------------------------------------------------

  function drawThumbs(values) {
    const length = nColumns / data.panels.length;
    return data.panels.slice(0, N_PANELS_SHOWN).map((_, p) => {
      const panel = values.slice(p * length, (p + 1) * length);
      return data.kind === "image" ? drawImage(panel) : drawCurve(panel);
    });
  }

  function drawImage(values) {
    const [height, width] = data.size;
    const canvas = make("canvas", { class: "raster thumb", width, height, "aria-hidden": "true" });
    const image = canvas.getContext("2d").createImageData(width, height);
    values.forEach((value, d) => {
      const row = Math.floor(d / width);
      const place = 4 * ((data.origin === "lower" ? height - 1 - row : row) * width + (d % width));
      const colour = Number.isNaN(value) ? UNKNOWN : value < 0 ? NEGATIVE : POSITIVE;
      const opacity = Number.isNaN(value) ? 0.6 : Math.min(Math.abs(value) / fullColour, 1);
      image.data.set([...colour, 255 * opacity], place);
    });
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  function drawCurve(values) {
    const height = (value) => 50 - 48 * value / fullColour;
    let path = "", pen = "M";
    values.forEach((value, d) => {
      if (Number.isNaN(value)) pen = "M"; // a gap where nothing was observed
      else { path += `${pen}${d} ${height(value).toFixed(1)}`; pen = "L"; }
    });
    return make("svg", { class: "thumb thumb-curve", viewBox: `0 0 ${Math.max(values.length - 1, 1)} 100`, preserveAspectRatio: "none", "aria-hidden": "true" },
      make("path", { class: "zero", d: `M0 50H${values.length}` }), make("path", { class: "curve-line", d: path }));
  }

  function thumb(values, caption, className = "") {
    return make("figure", { class: className }, ...drawThumbs(values), make("figcaption", {}, caption));
  }

  function drawSum(substates, seen) {
    // one element for both, so that no line ends with a sign
    const term = (sign, picture) => make("div", { class: "term" }, make("span", { class: "sign", "aria-hidden": "true" }, sign), picture);
    const row = make("div", { class: "sum" }, thumb(seen, "what the teacher saw", "first"));
    let next = "=";
    substates.forEach((substate, k) => {
      if (!substate) return;
      row.append(term(next, thumb(times(features[k], substate), `feature ${k} × ${places(substate)}`)));
      next = "+";
    });
    row.append(term(next, thumb(minus(seen, sumOfFeatures(substates)), "the rest: noise, or something new")));
    const scale = data.kind === "image"
      ? `Full colour: ${short(fullColour)}. Blue is above zero, orange below; grey was not observed.`
      : `All curves range from −${short(fullColour)} to ${short(fullColour)}.`;
    const order = data.panels.length > 1 ? ` From top to bottom: ${data.panels.slice(0, N_PANELS_SHOWN).join(", ")}.` : "";
    return make("div", {}, row, make("p", { class: "hint" }, scale + order));
  }

  // --- observations as stacked bars ----------------------------------------------------------------------------

  // The largest parts get a colour each, all others share one.
  function findParts(substates) {
    const weight = (k) => substates[k] * features[k].reduce((sum, entry) => sum + Math.abs(entry), 0);
    const present = substates.map((_, k) => k).filter((k) => substates[k] > 0).sort((a, b) => weight(b) - weight(a));
    const parts = present.slice(0, N_COLOURS).sort((a, b) => a - b).map((k, rank) => ({
      words: `feature ${k} × ${places(substates[k])}`,
      className: `part-${nFeatures <= N_COLOURS ? k : rank}`,
      values: times(features[k], substates[k]),
    }));
    const others = present.slice(N_COLOURS);
    if (others.length) {
      const left = substates.map((substate, k) => (others.includes(k) ? substate : 0));
      parts.push({ words: `${others.length} more features`, className: "part-others", values: sumOfFeatures(left) });
    }
    return parts;
  }

  function drawStacks(substates, seen) {
    const explained = sumOfFeatures(substates);
    const parts = findParts(substates);
    const rest = { words: "the rest, between the two: noise, or something new", className: "part-rest" };
    const strength = (d) => Math.max(Math.abs(seen[d]) || 0, Math.abs(explained[d]));
    const shown = Array.from(seen.keys()).sort((a, b) => strength(b) - strength(a)).slice(0, N_COLUMNS_SHOWN).sort((a, b) => a - b);
    const reach = shown.map((d) => stack(parts, d));
    const known = shown.map((d) => seen[d] || 0);
    const low = Math.min(0, ...known, ...reach.map((stacked) => stacked.low));
    const high = Math.max(1e-300, ...known, ...reach.map((stacked) => stacked.high));
    const place = (value) => (value - low) / (high - low);
    const legend = make("ul", { class: "legend" }, ...parts.map((part) => make("li", { class: part.className }, part.words)),
      make("li", { class: "legend-observed" }, "what the teacher saw"), make("li", { class: rest.className }, rest.words));
    const rows = shown.map((d, n) => {
      const svg = make("svg", { class: "bar", "aria-hidden": "true" });
      const draw = (part, from, to, y, height) => svg.append(
        make("rect", { class: `segment ${part.className}`, x: percent(place(Math.min(from, to))), width: percent(Math.abs(place(to) - place(from))), y, height },
          make("title", {}, `${part.words}: ${short(to - from)}`)));
      for (const { part, from, to } of reach[n].segments) draw(part, from, to, 2, 12);
      if (!Number.isNaN(seen[d])) {
        draw(rest, explained[d], seen[d], 5, 6);
        svg.append(make("line", { class: "observed", x1: percent(place(seen[d])), x2: percent(place(seen[d])), y1: 0, y2: 16 }));
      }
      return make("li", { class: "bar-row" }, makeName(data.columns[d]), svg, make("span", { class: "value" }, Number.isNaN(seen[d]) ? "missing" : short(seen[d])));
    });
    const count = nColumns > shown.length ? `The ${shown.length} strongest of ${nColumns} columns.` : "";
    return make("div", {}, legend, make("ul", { class: "bars" }, ...rows), make("p", { class: "hint" }, count));
  }

  // Parts above zero go to the right, parts below zero to the left.
  function stack(parts, d) {
    let low = 0, high = 0;
    const segments = [];
    for (const part of parts) {
      const value = part.values[d];
      if (!value) continue; // nothing there, or not observed
      const from = value > 0 ? high : low, to = from + value;
      if (value > 0) high = to; else low = to;
      segments.push({ part, from, to });
    }
    return { segments, low, high };
  }

  // --- the three panels ----------------------------------------------------------------------------------------

  let picked = 0;
  let imagined = []; // the substates that the sliders are set to

  const timeline = buildTimeline(document.getElementById("timeline"));
  const parts = buildParts(document.getElementById("parts"));
  const whatIf = buildWhatIf(document.getElementById("what-if"));

  function pick(i) {
    picked = Math.min(Math.max(i, 0), nRows - 1);
    imagined = [...data.substates[picked]];
    timeline.show();
    parts.show();
    whatIf.reset();
  }

  function buildTimeline(panel) {
    const laneNames = names.length ? [...names] : ["demonstrations"];
    const hasUnknown = names.length > 0 && data.actions.includes(-1);
    if (hasUnknown) laneNames.push("(unknown)");
    const lane = (action) => (action >= 0 ? action : laneNames.length - 1);
    const height = 16 * laneNames.length;
    // one path per lane: thousands of single elements would be slow
    const width = nRows > N_GAPLESS ? 1 : 0.9;
    const paths = laneNames.map((_, u) => data.actions.map((action, i) => (lane(action) === u ? `M${i} ${16 * u + 2}h${width}v12h-${width}z` : "")).join(""));
    const cursor = make("line", { class: "cursor", y1: 0, y2: height });
    const lanes = make("svg", { class: "lanes", viewBox: `0 0 ${nRows} ${height}`, height, preserveAspectRatio: "none", "aria-hidden": "true" },
      ...paths.map((d, u) => make("path", { class: `mark part-${u % N_COLOURS}`, d })), cursor);
    const range = make("input", { type: "range", min: 0, max: nRows - 1, step: 1, id: "pick", "aria-label": "Demonstration" });
    const back = make("button", { type: "button", "aria-label": "Previous demonstration" }, "←");
    const forth = make("button", { type: "button", "aria-label": "Next demonstration" }, "→");
    const list = make("ul", { class: "lane-names" }, ...laneNames.map((name) => make("li", {}, makeName(name, shorten(name)))));
    panel.append(make("div", { class: "timeline-lanes" }, list, lanes), make("div", { class: "timeline-controls" }, back, range, forth));

    lanes.addEventListener("click", (event) => {
      const box = lanes.getBoundingClientRect();
      pick(Math.floor((event.clientX - box.left) / box.width * nRows));
    });
    range.addEventListener("input", () => pick(Number(range.value)));
    back.addEventListener("click", () => pick(picked - 1));
    forth.addEventListener("click", () => pick(picked + 1));
    return {
      show() {
        range.value = picked;
        range.setAttribute("aria-valuetext", say(picked));
        cursor.setAttribute("x1", picked + 0.5);
        cursor.setAttribute("x2", picked + 0.5);
      },
    };
  }

  function say(i) {
    const action = data.actions[i];
    return `row ${data.rows[i]}${action >= 0 ? `: ${names[action]}` : ""}`;
  }

  function buildParts(panel) {
    const title = make("h3", { id: "parts-title" });
    const did = make("p", { class: "did" });
    const place = make("div");
    panel.append(title, did, place);
    // wide pictures need wide thumbnails to be seen at all
    panel.parentElement.classList.toggle("wide", data.kind === "curve" || data.size[1] > 1.6 * data.size[0]);
    return {
      show() {
        const action = data.actions[picked];
        const substates = data.substates[picked];
        const seen = observation(picked);
        fullColour = findLargest(seen, sumOfFeatures(substates));
        title.textContent = `Row ${data.rows[picked]}, taken apart`;
        did.textContent = "";
        if (action >= 0) did.append("The teacher's action: ", make("b", {}, make("bdi", {}, names[action])), ".");
        else if (names.length) did.append("What the teacher did here is not known.");
        place.replaceChildren(data.kind === "bars" ? drawStacks(substates, seen) : drawSum(substates, seen));
      },
    };
  }

  function buildWhatIf(panel) {
    panel.hidden = !names.length && (data.kind === "bars" || !nFeatures); // a slider would change nothing
    panel.parentElement.classList.toggle("single", panel.hidden);
    const resetButton = make("button", { type: "button", id: "reset" }, "Reset");
    const head = make("div", { class: "what-if-head screen-only" }, make("h3", { id: "what-if-title" }, "What if?"), resetButton);
    const sliders = Array.from({ length: nFeatures }, (_, k) => makeSlider(k));
    const bars = names.map(makeProbabilityBar);
    const live = make("p", { class: "quiet", "aria-live": "polite" });
    const picture = make("div", { class: "sum" });
    panel.append(head);
    resetButton.hidden = !nFeatures;
    if (nFeatures) panel.append(make("p", { class: "hint screen-only" }, "Move a slider to change how much of a feature is present."));
    if (names.length) {
      panel.append(make("h4", {}, "What the teacher would do"), make("ul", { class: "bars", id: "probabilities" }, ...bars.map((bar) => bar.row)),
        make("p", { class: "hint screen-only" }, "▸ what the teacher did; vertical mark: before the sliders were moved."));
    }
    const list = make("ul", { class: "sliders" }, ...sliders.map((slider) => slider.item));
    const absentWords = make("summary");
    const absentList = make("ul", { class: "sliders" });
    const absent = make("details", { class: "absent" }, absentWords, absentList);
    panel.append(list, absent);
    if (data.kind !== "bars" && nFeatures) panel.append(make("h4", {}, "What the teacher would see, noise aside"), picture);
    panel.append(live);
    let timer = 0;

    function makeSlider(k) {
      const input = make("input", { type: "range", min: 0, max: 1, step: "any", "data-feature": k, "aria-label": `Feature ${k}` });
      const output = make("span", { class: "value" });
      const item = make("li", {}, make("label", {}, `Feature ${k}`, input, output));
      input.addEventListener("input", () => {
        imagined[k] = Number(input.value);
        show();
        clearTimeout(timer); // a moving slider must not flood a screen reader
        timer = setTimeout(announce, PAUSE);
      });
      return { input, output, item };
    }

    function show() {
      const before = data.substates[picked];
      sliders.forEach(({ output, item, input }, k) => {
        output.textContent = places(imagined[k]);
        input.setAttribute("aria-valuetext", places(imagined[k]));
        item.classList.toggle("changed", imagined[k] !== before[k]);
      });
      const now = actionProbabilities(imagined), then = actionProbabilities(before);
      bars.forEach((bar, u) => bar.show(now[u], then[u], now[u] === Math.max(...now), data.actions[picked] === u));
      if (data.kind !== "bars" && nFeatures) picture.replaceChildren(thumb(sumOfFeatures(imagined), "sum of the features", "first"));
    }

    function announce() {
      if (!names.length) return;
      const now = actionProbabilities(imagined);
      const best = now.indexOf(Math.max(...now));
      live.textContent = `Most probable now: ${names[best]}, ${places(now[best])}`;
    }

    function reset() {
      imagined = [...data.substates[picked]];
      sliders.forEach(({ input }, k) => { input.value = imagined[k]; });
      const isFolded = (k) => nFeatures > N_UNSORTED && !(imagined[k] > 0); // otherwise the others would be hard to find
      list.replaceChildren(...sliders.filter((_, k) => !isFolded(k)).map(({ item }) => item));
      absentList.replaceChildren(...sliders.filter((_, k) => isFolded(k)).map(({ item }) => item));
      const nFolded = absentList.children.length;
      absent.hidden = !nFolded;
      absentWords.textContent = `${nFolded} absent ${nFolded === 1 ? "feature" : "features"}`;
      show();
    }

    resetButton.addEventListener("click", () => { reset(); announce(); });
    return { reset };
  }

  function makeProbabilityBar(name) {
    const rect = make("rect", { x: 0, y: 2, height: 12 });
    const mark = make("line", { class: "before", y1: 0, y2: 16 });
    const value = make("span", { class: "value" });
    const row = make("li", { class: "bar-row" }, makeName(name), make("svg", { class: "bar", "aria-hidden": "true" }, rect, mark), value);
    return {
      row,
      show(now, before, isBest, isTaken) {
        row.dataset.probability = now; // every digit, for whoever wants to check
        row.classList.toggle("taken", isTaken);
        rect.setAttribute("width", percent(now));
        rect.setAttribute("class", isBest ? "fill-strong" : "fill");
        mark.setAttribute("x1", percent(before));
        mark.setAttribute("x2", percent(before));
        value.textContent = places(now);
      },
    };
  }

  document.getElementById("explorer-body").hidden = false;
  pick(0);
})();
