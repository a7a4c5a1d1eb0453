"use strict";
// Draws the charts of a report from the JSON in the page. uPlot has the axes, the cursor and the zoom; what is specific to batchstep (bands,
// fitted lines that break at jumps, the places that a jump may have, blocks) is drawn here. Text from data becomes text nodes only.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = [];

  // ---- small things ----
  const element = (name, properties = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key in made && key !== "role") made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const seriesColor = (index) => color(`--series-${index % 4}`);
  const narrow = () => innerWidth < 641;

  // Three significant digits and an SI prefix, as in the tables.
  const prefixes = [[1e-12, "p"], [1e-9, "n"], [1e-6, "\u00b5"], [1e-3, "m"], [1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"]];
  const prefixed = ["s", "Hz", "W", "J", "B/s", "bit/s", "FLOP/s"];
  const prefix = (value, unit) => {
    const size = Math.abs(value);
    if (!prefixed.includes(unit) || size === 0 || !isFinite(size) || (unit === "s" && size >= 0.9995)) return [1, ""];
    return [...prefixes].reverse().find(([factor]) => size / factor >= 0.9995) ?? prefixes[0];
  };
  const digits = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size < 1e-4 || size >= 1e7) return value.toExponential(2);
    return value.toFixed(Math.min(Math.max(2 - Math.floor(Math.log10(Number(size.toPrecision(3)))), 0), 8));
  };
  const quantity = (value, unit) => {
    const [factor, sign] = prefix(value, unit);
    return `${digits(value / factor)} ${sign}${unit}`.trim();
  };
  const range = (low, high, unit) => {
    const [factor, sign] = prefix(Math.max(Math.abs(low), Math.abs(high)), unit);
    return `${digits(low / factor)} to ${digits(high / factor)} ${sign}${unit}`.trim();
  };
  const count = (value) => value.toLocaleString("en");
  const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

  // ---- axes ----
  const font = () => `12px ${color("--sans")}`;
  const ruler = document.createElement("canvas").getContext("2d");
  const wide = (text) => {
    ruler.font = font();
    return ruler.measureText(text).width;
  };
  // A unit without prefixes is named once, in the title, where beside each number it would take the plot's room.
  const isLong = (unit) => unit.length > 5 && !prefixed.includes(unit);
  const nice = (low, high, most) => {
    const raw = (high - low) / Math.max(most, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw) ?? raw;
    const ticks = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) ticks.push(Number((n * step).toPrecision(12)));
    return ticks;
  };
  // Batch sizes: steps in powers of two, so that 16, 32, 48 and 64 are named.
  const batchTicks = (low, high, most) => {
    if (high - low > 5000) return nice(Math.max(0, low), high, most);
    let step = 1;
    while ((high - low) / step > most) step *= 2;
    const ticks = low <= 1 && step > 1 ? [1] : [];
    for (let n = Math.ceil(low / step); n * step <= high; n += 1) if (n * step >= 0) ticks.push(n * step);
    return ticks.filter((tick, at) => at === 0 || tick - ticks[at - 1] >= step / 2);
  };
  const logTicks = (low, high, base) => {
    const ticks = [];
    const parts = base === 2 ? [1] : [1, 2, 5];
    for (let power = Math.floor(Math.log(low) / Math.log(base)); power <= Math.ceil(Math.log(high) / Math.log(base)); power += 1) {
      for (const part of parts) {
        const tick = Number((part * base ** power).toPrecision(12));
        if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
      }
    }
    return ticks;
  };
  const axisX = (label, splits) => ({
    stroke: () => color("--text"), font: font(), labelFont: font(), label, labelSize: 22, labelGap: 2, size: 32, gap: 5,
    grid: { show: false }, ticks: { stroke: () => color("--axis"), width: 1, size: 5 },
    splits, filter: (u, ticks) => ticks,
    // A number that would touch the one before, or be cut off at the end, is left out.
    values: (u, ticks) => {
      let free = -Infinity;
      return ticks.map((tick) => {
        const text = Number.isInteger(tick) ? count(tick) : digits(tick);
        const [middle, half] = [u.valToPos(tick, "x"), wide(text) / 2];
        if (middle - half < free || u.bbox.left / devicePixelRatio + middle + half > u.width) return "";
        free = middle + half + 8;
        return text;
      });
    },
    border: { show: true, stroke: () => color("--axis"), width: 1 },
  });
  const axisY = (unit, log, levels) => ({
    stroke: () => color("--text"), font: font(), gap: 6,
    // As wide as the widest number, and not changed again once uPlot has laid out the plot with it.
    size: (u, values, axis, cycle) => (cycle > 1 ? u.axes[axis]._size : Math.max(narrow() ? 58 : 72, ...(values ?? []).map((text) => Math.ceil(wide(text)) + 12))),
    grid: { stroke: () => color("--grid"), width: 1 }, ticks: { show: false },
    // uPlot names decades only.
    ...(log ? { filter: (u, ticks) => ticks } : {}),
    splits: (u, at, low, high) => (levels ? levels.filter((level) => level >= low && level <= high) : log ? logTicks(low, high, 10) : nice(low, high, Math.max(3, u.bbox.height / devicePixelRatio / 55))),
    values: (u, ticks) => {
      const [factor, sign] = prefix(Math.max(...ticks.map(Math.abs)), unit);
      const shown = isLong(unit) ? "" : unit;
      if (log) return ticks.map((tick) => quantity(tick, shown));
      if (ticks.length === 1) return [quantity(ticks[0], shown)];
      const gap = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) / factor : 1;
      const decimals = Math.min(Math.max(0, -Math.floor(Math.log10(gap) + 1e-9)), 8);
      const exact = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
      return ticks.map((tick) => `${(tick / factor).toLocaleString("en", exact)} ${sign}${shown}`.trim());
    },
  });

  // ---- a chart: a figure with legend, tools, plot, spoken text and table ----
  // chart: { title, series: [{ name, index }], x: [..], y: [[..] for each series], log, extents(low, high) -> [low, high],
  //          draw(u, shown), tip(idx, shown) -> [{title}|{swatch,text}|{jump}], table() -> rows, height, group }
  const swatch = (index, kind = "line") => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "swatch");
    svg.setAttribute("viewBox", "0 0 18 10");
    svg.setAttribute("aria-hidden", "true");
    const add = (name, attributes) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      svg.append(made);
    };
    const stroke = typeof index === "string" ? `var(${index})` : `var(--series-${index % 4})`;
    if (kind === "line") {
      add("line", { x1: 0, x2: 18, y1: 5, y2: 5, stroke, "stroke-width": 2, ...(index > 3 ? { "stroke-dasharray": dashes(index).join(" ") } : {}) });
      add("circle", { cx: 9, cy: 5, r: 3, fill: stroke });
    } else if (kind === "dot") add("circle", { cx: 9, cy: 5, r: 3, fill: stroke });
    else if (kind === "ring") add("circle", { cx: 9, cy: 5, r: 3, fill: "none", stroke, "stroke-width": 1.4 });
    else if (kind === "gap") add("line", { x1: 9, x2: 9, y1: -1, y2: 11, stroke, "stroke-width": 3.4 });
    else if (kind === "places") add("path", { d: "M1 1v8M1 5h16M17 1v8", fill: "none", stroke, "stroke-width": 1.4 });
    else if (kind === "band") add("rect", { x: 0, y: 0, width: 18, height: 10, fill: stroke, opacity: 0.28 });
    else if (kind === "solid") add("rect", { x: 0, y: 0, width: 18, height: 10, fill: stroke });
    else if (kind === "diamond") add("path", { d: "M9 0l5 5-5 5-5-5z", fill: stroke });
    else if (kind === "dash") add("path", { d: "M2 5h14", fill: "none", stroke, "stroke-width": 2, "stroke-dasharray": "3 2" });
    else if (kind === "teeth") add("path", { d: "M3 1v8M9 1v8M15 1v8", fill: "none", stroke, "stroke-width": 2 });
    return svg;
  };
  const dashes = (index) => [[], [6, 3], [2, 2]][Math.floor(index / 4) % 3];

  const make = (parent, chart) => {
    const figure = element("figure");
    const heading = isLong(chart.unit) ? `${chart.title} (${chart.unit})` : chart.title;
    const caption = element("figcaption", {}, element("strong", {}, heading));
    const host = element("div", { className: "plot", tabIndex: 0, role: "group", "aria-roledescription": "interactive chart" });
    host.setAttribute("aria-label", `${chart.title}. ${chart.summary ?? ""} Left and right arrow keys move through the points, plus and minus zoom, 0 shows all.`);
    const tip = element("div", { className: "tip", hidden: true, "aria-hidden": "true" });
    const said = element("div", { className: "said", role: "status", "aria-live": "polite" });
    const shown = chart.series.map(() => true);
    const fullX = chart.fullX;
    let plot = null;
    let speaks = false;

    const tool = (label, name, act) => {
      const button = element("button", { type: "button", title: name, "aria-label": `${name}: ${chart.title}` }, label);
      button.addEventListener("click", act);
      return button;
    };
    const zoom = (factor) => {
      const at = plot.cursor.idx != null && plot.cursor.left >= 0 ? plot.data[0][plot.cursor.idx] : null;
      let { min, max } = plot.scales.x;
      const to = chart.log ? Math.log : (v) => v;
      const from = chart.log ? Math.exp : (v) => v;
      [min, max] = [to(min), to(max)];
      const middle = at == null ? (min + max) / 2 : to(at);
      const half = ((max - min) / 2) * factor;
      show(from(Math.max(to(fullX[0]), middle - half)), from(Math.min(to(fullX[1]), middle + half)));
    };
    const show = (min, max) => {
      if (chart.x.filter((x) => x >= min && x <= max).length > 1) plot.setScale("x", { min, max });
    };
    const reset = () => plot.setScale("x", { min: fullX[0], max: fullX[1] });
    const tools = element("div", { className: "tools" },
      tool("+", "Zoom in", () => zoom(0.5)), tool("\u2212", "Zoom out", () => zoom(2)), tool("All", "Show all", reset));
    if (!chart.plain) caption.append(tools);
    figure.append(caption);

    if (chart.series.length > 1 && !chart.silent) {
      const legend = element("div", { className: "legend", role: "group", "aria-label": `Series of ${chart.title}` });
      chart.series.forEach((series, at) => {
        const button = element("button", { type: "button", "aria-pressed": "true" }, swatch(series.index), series.name);
        button.addEventListener("click", () => {
          const next = !shown[at];
          for (const member of chart.group) member.toggle(at, next);
          button.setAttribute("aria-pressed", String(next));
        });
        legend.append(button);
      });
      figure.append(legend);
    }
    if (chart.keys) {
      figure.append(element("ul", { className: "key" }, ...chart.keys.map(([kind, index, text]) => element("li", {}, swatch(index, kind), text))));
    }
    host.append(tip);
    figure.append(host, said);
    parent.append(figure);

    // Text of the point under the cursor, as elements and as one sentence.
    const tell = () => {
      const idx = plot.cursor.idx;
      if (idx == null || plot.cursor.left < 0) {
        tip.hidden = true;
        return;
      }
      const lines = chart.tip(idx, shown);
      if (!lines.length) {
        tip.hidden = true;
        return;
      }
      tip.replaceChildren(...lines.map((line) => {
        if (line.title) return element("b", {}, line.title);
        if (line.jump) return element("div", { className: "jump" }, line.jump, ...(line.small ?? []).map((text) => element("small", {}, text)));
        const row = element("div", { className: "row" });
        if (line.swatch != null) row.append(swatch(line.swatch));
        row.append(element("span", {}, line.text));
        return row;
      }));
      tip.hidden = false;
      const left = plot.cursor.left + plot.over.offsetLeft;
      const room = host.clientWidth - left;
      const flip = room < tip.offsetWidth + 18;
      const x = flip ? Math.max(0, left - tip.offsetWidth - 14) : left + 14;
      const y = Math.max(0, Math.min(plot.over.offsetTop + (plot.cursor.top ?? 0) - tip.offsetHeight - 12, plot.over.offsetTop + plot.over.clientHeight - tip.offsetHeight));
      tip.style.transform = `translate(${Math.round(x)}px,${Math.round(y)}px)`;
      if (speaks) said.textContent = lines.map((line) => [line.title ?? line.jump ?? line.text, ...(line.small ?? [])].join("; ")).join(". ");
    };

    const draw = (u) => {
      u.ctx.save();
      u.ctx.beginPath();
      u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      u.ctx.clip();
      u.ctx.lineJoin = "round";
      chart.draw(u, shown);
      u.ctx.restore();
    };
    const height = () => (narrow() ? Math.round(chart.height * 0.86) : chart.height);
    const options = {
      width: host.clientWidth || 640,
      height: height(),
      padding: [10, 20, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, ...(chart.log ? { distr: 3, log: 2 } : {}), range: (u, min, max) => (min == null ? fullX : [min, max]) },
        y: {
          ...(chart.logY ? { distr: 3, log: 10 } : {}),
          range: (u) => chart.rangeY(u.scales.x.min ?? fullX[0], u.scales.x.max ?? fullX[1], shown),
        },
      },
      axes: [axisX(chart.labelX, chart.splitsX), axisY(chart.unit, chart.logY, chart.levels)],
      series: [{}, ...chart.series.map((series) => ({
        label: series.name, paths: () => null, points: { show: false }, stroke: () => (series.color ? color(series.color) : seriesColor(series.index)),
      }))],
      cursor: {
        y: false, drag: { x: true, y: false, dist: 6 }, points: { show: !chart.dense, size: 9, width: 0, fill: (u, at) => (chart.series[at - 1].color ? color(chart.series[at - 1].color) : seriesColor(chart.series[at - 1].index)) },
        bind: { dblclick: () => () => { reset(); return null; } },
      },
      hooks: {
        draw: [draw],
        setCursor: [(u) => {
          tell();
          for (const other of chart.group) if (other !== member && !member.echo) other.follow(u.cursor.left < 0 ? null : u.posToVal(u.cursor.left, "x"));
        }],
        setScale: [(u, key) => {
          if (key !== "x") return;
          // While uPlot sets a scale, the others see its old extent, and setting them is lost: y follows once that is done.
          queueMicrotask(refit);
          if (member.echo) return;
          for (const other of chart.group) if (other !== member) other.zoomTo(u.scales.x.min, u.scales.x.max);
        }],
      },
    };
    const refit = () => {
      if (!plot) return;
      const [min, max] = chart.rangeY(plot.scales.x.min, plot.scales.x.max, shown);
      plot.setScale("y", { min, max });
    };
    const member = {
      echo: true,
      figure,
      get plot() { return plot; },
      toggle(at, next) {
        shown[at] = next;
        if (plot.series[at + 1]) plot.setSeries(at + 1, { show: next });
        refit();
      },
      follow(value) {
        member.echo = true;
        if (value == null) plot.setCursor({ left: -10, top: -10 }, false);
        else plot.setCursor({ left: plot.valToPos(value, "x"), top: -10 }, false);
        member.echo = false;
        tip.hidden = true;
      },
      zoomTo(min, max) {
        if (plot.scales.x.min === min && plot.scales.x.max === max) return;
        member.echo = true;
        plot.setScale("x", { min, max });
        member.echo = false;
      },
      redraw() { plot.redraw(false, true); },
      resize(width) { plot.setSize({ width: width ?? host.clientWidth, height: height() }); },
    };
    chart.group.push(member);
    charts.push(member);
    plot = new uPlot(options, [chart.x, ...chart.y], host);
    reset();
    member.echo = false;
    host.append(tip);
    new ResizeObserver(() => {
      if (host.clientWidth > 0 && host.clientWidth !== plot.width && !document.documentElement.classList.contains("printing")) member.resize();
    }).observe(host);

    // ---- keyboard ----
    let at = -1;
    const visible = () => {
      const { min, max } = plot.scales.x;
      return chart.x.map((x, idx) => idx).filter((idx) => chart.x[idx] >= min && chart.x[idx] <= max && chart.y.some((y, s) => shown[s] && y[idx] != null));
    };
    host.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const places = visible();
      const now = places.indexOf(at);
      const jump = event.shiftKey ? 10 : 1;
      const moves = {
        ArrowRight: () => Math.min(places.length - 1, now < 0 ? 0 : now + jump), ArrowLeft: () => Math.max(0, now < 0 ? places.length - 1 : now - jump),
        Home: () => 0, End: () => places.length - 1,
      };
      if (moves[event.key] && places.length) {
        at = places[moves[event.key]()];
        speaks = true;
        const first = chart.y.findIndex((y, s) => shown[s] && y[at] != null);
        plot.setCursor({ left: plot.valToPos(chart.x[at], "x"), top: plot.valToPos(chart.y[first][at], "y") });
        speaks = false;
      } else if (event.key === "+" || event.key === "=") zoom(0.5);
      else if (event.key === "-") zoom(2);
      else if (event.key === "0") reset();
      else if (event.key === "Escape") plot.setCursor({ left: -10, top: -10 });
      else return;
      event.preventDefault();
    });
    host.addEventListener("blur", () => plot.setCursor({ left: -10, top: -10 }));

    if (chart.table) {
      const details = element("details", { className: "chart-table" }, element("summary", {}, "Table of this chart"));
      details.addEventListener("toggle", () => {
        if (!details.open || details.children.length > 1) return;
        const { heads, rows } = chart.table();
        const head = element("tr", {}, ...heads.map((text, i) => element("th", { scope: "col", className: i === 0 && heads.length > 5 ? "words" : "number" }, text)));
        const body = rows.slice(0, 5000).map((row) => element("tr", {}, ...row.map((text, i) => element("td", { className: i === 0 && heads.length > 5 ? "words" : "number" }, text))));
        details.append(element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": `Table of ${chart.title}` },
          element("table", {}, element("thead", {}, head), element("tbody", {}, ...body))));
        if (rows.length > 5000) details.append(element("p", { className: "note" }, `The first 5,000 of ${count(rows.length)} rows.`));
      });
      figure.append(details);
    }
    return member;
  };

  // ---- step time ----
  const union = (lists) => [...new Set(lists.flat())].sort((a, b) => a - b);
  const padded = (xs, log) => {
    const [low, high] = [xs[0], xs[xs.length - 1]];
    if (low === high) return [low - 1, high + 1];
    if (log) return [low / (high / low) ** 0.02, high * (high / low) ** 0.02];
    return [low - 0.018 * (high - low), high + 0.018 * (high - low)];
  };

  // The pieces of a series between its jumps, as [first, last] indices.
  const pieces = (series) => {
    const starts = series.x.map((x, i) => i === 0 || series.jumps.some((jump) => series.x[i - 1] <= jump.after && jump.after < x));
    const found = [];
    starts.forEach((starts, i) => (starts ? found.push([i, i]) : (found[found.length - 1][1] = i)));
    return found;
  };
  const next = (series, x) => series.x.find((other) => other > x) ?? x;
  const behind = (series, x, log) => (log ? Math.sqrt(x * next(series, x)) : (x + next(series, x)) / 2);

  const jumpsAt = (series, x) => series.jumps.filter((jump) => jump.after === x || next(series, jump.after) === x);
  const mechanisms = (series, after) => {
    const found = data.documents[series.run]?.mechanisms?.series?.[series.index]?.jumps?.find((jump) => jump.after === after);
    return (found?.mechanisms ?? []).map((one) => `${one.meaning}: ${one.verdict}`);
  };

  const stepChart = (parent, chart, of, title, group, first) => {
    const { unit } = chart.y;
    const log = chart.log;
    const x = union(chart.series.map((series) => series.x));
    const place = chart.series.map((series) => new Map(series.x.map((value, i) => [value, i])));
    const y = chart.series.map((series, s) => x.map((value) => (place[s].has(value) ? series.center[place[s].get(value)] * of(value) : null)));
    const single = chart.series.length === 1;
    const jumpColor = (s) => (single ? color("--jump") : seriesColor(s));
    const cut = chart.series.map(pieces);
    const few = (series) => series.x.length < 25;

    // Around what is visible; from zero where the values come near to it. Of the time per item, the smallest batches do not set the axis.
    const rangeY = (min, max, shown) => {
      let values = [];
      chart.series.forEach((series, s) => {
        if (!shown[s]) return;
        let own = [];
        series.x.forEach((value, i) => {
          if (value < min || value > max) return;
          for (const v of [series.low[i], series.high[i], series.center[i]]) if (v != null) own.push(v * of(value));
        });
        if (!first && own.length) {
          own.sort((a, b) => a - b);
          const middle = own[Math.floor(own.length / 2)];
          own = own.filter((v) => v <= 2 * middle);
        }
        values = values.concat(own);
      });
      if (!values.length) return log ? [1, 10] : [0, 1];
      const [low, high] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
      if (log && first) return [low / 1.25, high * 1.35];
      const margin = (high - low || Math.abs(high) || 1) * 0.1;
      return first && low >= 0 && low < 0.5 * high ? [0, high + (single ? 1.6 : 2.8) * margin] : [low - margin, high + (first ? (single ? 2.2 : 3.4) : 1) * margin];
    };

    const draw = (u, shown) => {
      const { ctx } = u;
      const r = devicePixelRatio;
      const X = (v) => u.valToPos(v, "x", true);
      const Y = (v) => u.valToPos(v, "y", true);
      const { min, max } = u.scales.x;
      const inside = (value) => value >= min && value <= max;
      // The sizes to avoid, from halfway to the size before to halfway to the next one.
      chart.series.forEach((series, s) => {
        if (!shown[s] || first) return;
        ctx.globalAlpha = 0.16;
        ctx.fillStyle = jumpColor(s);
        const edge = (i) => Math.min(Math.max(i < 0 ? min : i + 1 < series.x.length ? behind(series, series.x[i], log) : max, min), max);
        series.x.forEach((at, i) => {
          if (!series.avoid.includes(at)) return;
          const left = Math.round(X(edge(i - 1)));
          ctx.fillRect(left, u.bbox.top, Math.round(X(edge(i))) - left, u.bbox.height);
        });
        ctx.globalAlpha = 1;
      });
      chart.series.forEach((series, s) => {
        if (!shown[s]) return;
        const guides = series.jumps.filter((jump) => inside(behind(series, jump.after, log)));
        if (guides.length > 60) return;
        ctx.strokeStyle = single ? color("--jump") : color("--axis");
        ctx.globalAlpha = guides.length > 6 ? 0.25 : 0.45;
        ctx.lineWidth = r;
        ctx.setLineDash([2 * r, 3 * r]);
        for (const jump of guides) {
          const at = Math.round(X(behind(series, jump.after, log))) + 0.5;
          ctx.beginPath();
          ctx.moveTo(at, u.bbox.top);
          ctx.lineTo(at, u.bbox.top + u.bbox.height);
          ctx.stroke();
        }
        ctx.setLineDash([]);
        ctx.globalAlpha = 1;
      });
      chart.series.forEach((series, s) => {
        if (!shown[s]) return;
        const ink = seriesColor(s);
        // Intervals.
        ctx.fillStyle = ctx.strokeStyle = ink;
        if (few(series)) {
          ctx.globalAlpha = 0.45;
          ctx.lineWidth = 3 * r;
          series.x.forEach((value, i) => {
            if (series.low[i] == null || series.high[i] == null) return;
            ctx.beginPath();
            ctx.moveTo(X(value), Y(series.low[i] * of(value)));
            ctx.lineTo(X(value), Y(series.high[i] * of(value)));
            ctx.stroke();
          });
        } else {
          ctx.globalAlpha = 0.22;
          for (const [from, to] of cut[s]) {
            const own = [];
            for (let i = from; i <= to; i += 1) if (!series.off[i] && series.low[i] != null && series.high[i] != null) own.push(i);
            if (!own.length) continue;
            ctx.beginPath();
            own.forEach((i) => ctx.lineTo(X(series.x[i]), Y(series.low[i] * of(series.x[i]))));
            own.reverse().forEach((i) => ctx.lineTo(X(series.x[i]), Y(series.high[i] * of(series.x[i]))));
            ctx.closePath();
            ctx.fill();
          }
        }
        // The fitted line, to the middle of its gaps.
        ctx.globalAlpha = 0.85;
        ctx.lineWidth = 1.5 * r;
        ctx.setLineDash(dashes(s).map((d) => d * r));
        const along = (piece, value) => {
          const i = value > series.x[piece[1]] ? piece[1] : piece[0] + 1;
          if (piece[0] === piece[1]) return series.fit[piece[0]];
          const [a, b] = [Math.max(i - 1, piece[0]), Math.min(Math.max(i, piece[0] + 1), piece[1])];
          return series.fit[a] + ((series.fit[b] - series.fit[a]) * (value - series.x[a])) / (series.x[b] - series.x[a] || 1);
        };
        cut[s].forEach((piece, p) => {
          ctx.beginPath();
          if (p > 0) {
            const middle = behind(series, series.x[piece[0] - 1], log);
            ctx.moveTo(X(middle), Y(along(piece, middle) * of(middle)));
          }
          for (let i = piece[0]; i <= piece[1]; i += 1) if (series.fit[i] != null) ctx.lineTo(X(series.x[i]), Y(series.fit[i] * of(series.x[i])));
          if (p + 1 < cut[s].length) {
            const middle = behind(series, series.x[piece[1]], log);
            ctx.lineTo(X(middle), Y(along(piece, middle) * of(middle)));
          }
          ctx.stroke();
        });
        ctx.setLineDash([]);
        // Medians.
        ctx.globalAlpha = 1;
        const radius = Math.min(3.2, Math.max(1.4, (0.32 * u.bbox.width) / r / series.x.filter(inside).length)) * r;
        series.x.forEach((value, i) => {
          if (!inside(value)) return;
          const [at, level] = [X(value), Y(series.center[i] * of(value))];
          ctx.beginPath();
          if (level < u.bbox.top) {
            // Beyond the axis: an arrow at its end.
            ctx.moveTo(at, u.bbox.top + r);
            ctx.lineTo(at - 4 * r, u.bbox.top + 7 * r);
            ctx.lineTo(at + 4 * r, u.bbox.top + 7 * r);
            ctx.fill();
            return;
          }
          ctx.arc(at, level, series.off[i] ? radius + 0.6 * r : radius, 0, 2 * Math.PI);
          if (series.off[i]) {
            ctx.lineWidth = 1.3 * r;
            ctx.stroke();
          } else ctx.fill();
        });
        // Jumps, with the places that they may have.
        ctx.strokeStyle = ctx.fillStyle = jumpColor(s);
        cut[s].slice(1).forEach((piece, p) => {
          const before = cut[s][p];
          const jump = series.jumps.find((j) => series.x[before[1]] <= j.after && j.after < series.x[piece[0]]);
          if (!jump) return;
          const middle = behind(series, series.x[before[1]], log);
          const [from, to] = [Y(along(before, middle) * of(middle)), Y(along(piece, middle) * of(middle))];
          ctx.lineWidth = 3.2 * r;
          ctx.lineCap = "round";
          ctx.beginPath();
          ctx.moveTo(X(middle), from);
          ctx.lineTo(X(middle), to);
          ctx.stroke();
          ctx.lineCap = "butt";
          if (jump.after_low < jump.after_high) {
            const [a, b, level] = [X(behind(series, jump.after_low, log)), X(behind(series, jump.after_high, log)), (from + to) / 2];
            ctx.lineWidth = 1.4 * r;
            ctx.beginPath();
            ctx.moveTo(a, level);
            ctx.lineTo(b, level);
            for (const end of [a, b]) {
              ctx.moveTo(end, level - 4 * r);
              ctx.lineTo(end, level + 4 * r);
            }
            ctx.stroke();
          }
        });
        if (first) marks(u, series, s, { X, Y, of, cut: cut[s], along, inside, ink: jumpColor(s) });
      });
      if (first) labels(u, shown);
    };

    // Kinks, rejected candidates and the teeth of the period.
    const marks = (u, series, s, { X, Y, inside, ink }) => {
      const { ctx } = u;
      const r = devicePixelRatio;
      ctx.fillStyle = ink;
      for (const kink of series.kinks) {
        const i = series.x.indexOf(kink.at);
        if (i < 0 || !inside(kink.at)) continue;
        const [at, level] = [X(kink.at), Y(series.fit[i])];
        ctx.beginPath();
        [[0, -5], [5, 0], [0, 5], [-5, 0]].forEach(([dx, dy]) => ctx.lineTo(at + dx * r, level + dy * r));
        ctx.fill();
      }
      ctx.strokeStyle = color("--muted");
      ctx.lineWidth = 2 * r;
      ctx.setLineDash([3 * r, 2 * r]);
      for (const candidate of series.rejected) {
        const i = series.x.indexOf(candidate.after);
        const value = behind(series, candidate.after, log);
        if (i < 0 || !inside(value)) continue;
        ctx.beginPath();
        ctx.moveTo(X(value), Y(series.fit[i]) - 7 * r);
        ctx.lineTo(X(value), Y(series.fit[i]) + 7 * r);
        ctx.stroke();
      }
      ctx.setLineDash([]);
      if (series.period && !log) {
        const { value, first: from } = series.period;
        const offset = (from ?? 0) % value;
        ctx.strokeStyle = color("--period");
        ctx.lineWidth = 2 * r;
        const bottom = u.bbox.top + u.bbox.height;
        const { min, max } = u.scales.x;
        if ((max - min) / value <= 200) {
          for (let n = Math.ceil((min - offset) / value); offset + n * value <= max; n += 1) {
            if (offset + n * value <= 0) continue;
            const at = X(behind(series, offset + n * value, log));
            ctx.beginPath();
            ctx.moveTo(at, bottom - 9 * r);
            ctx.lineTo(at, bottom - r);
            ctx.stroke();
          }
        }
      }
    };

    // The largest jumps are named at the top of the plot, where there is room.
    const labels = (u, shown) => {
      const { ctx } = u;
      const r = devicePixelRatio;
      const wanted = [];
      chart.series.forEach((series, s) => {
        if (!shown[s]) return;
        for (const jump of series.jumps) {
          const value = behind(series, jump.after, log);
          if (value >= u.scales.x.min && value <= u.scales.x.max) wanted.push({ jump, s, at: u.valToPos(value, "x", true), weight: Math.abs(parseFloat(jump.relative)) || 0 });
        }
      });
      wanted.sort((a, b) => b.weight - a.weight);
      ctx.font = `${12 * r}px ${color("--sans")}`;
      ctx.textBaseline = "middle";
      ctx.textAlign = "left";
      const rows = single ? 2 : 4;
      const taken = Array.from({ length: rows }, () => []);
      for (const { jump, s, at } of wanted.slice(0, 40)) {
        const text = `${jump.after}: ${jump.relative}`;
        const width = ctx.measureText(text).width + 8 * r;
        let left = at + 4 * r;
        if (left + width > u.bbox.left + u.bbox.width) left = at - width - 4 * r;
        const row = taken.findIndex((spans) => spans.every(([a, b]) => left > b || left + width < a));
        if (row < 0 || left < u.bbox.left) continue;
        taken[row].push([left, left + width]);
        const level = u.bbox.top + (10 + 17 * row) * r;
        ctx.globalAlpha = 0.86;
        ctx.fillStyle = color("--paper");
        ctx.fillRect(left, level - 8 * r, width, 16 * r);
        ctx.globalAlpha = 1;
        ctx.fillStyle = jumpColor(s);
        ctx.fillText(text, left + 4 * r, level + 0.5 * r);
      }
    };

    const item = chart.item ?? "example";
    const value = (series, i) => {
      const at = series.x[i];
      const interval = series.low[i] == null || series.high[i] == null ? "" : ` (${range(series.low[i] * of(at), series.high[i] * of(at), unit)})`;
      return `${quantity(series.center[i] * of(at), unit)}${interval}`;
    };
    const tip = (idx, shown) => {
      const at = x[idx];
      const lines = [{ title: `${chart.x.name} ${count(at)}` }];
      chart.series.forEach((series, s) => {
        if (!shown[s] || !place[s].has(at)) return;
        const i = place[s].get(at);
        const name = single ? "" : `${series.name}: `;
        lines.push({ swatch: s, text: `${name}${value(series, i)}, ${counted(series.steps[i], "step")}${series.off[i] ? ", off the curve" : ""}` });
      });
      chart.series.forEach((series, s) => {
        if (!shown[s] || !place[s].has(at)) return;
        for (const jump of jumpsAt(series, at)) {
          const places = jump.after_low < jump.after_high ? ` (${jump.after_low} to ${jump.after_high})` : "";
          lines.push({
            jump: `${single ? "" : `${series.name}: `}jump after ${jump.after}${places}: ${jump.size}, ${jump.relative}`,
            small: [`95 % interval ${jump.interval}; ${jump.p}${jump.more_work ? `; more work: ${jump.more_work}` : ""}`, ...mechanisms(series, jump.after)],
          });
        }
        for (const kink of series.kinks) if (kink.at === at) lines.push({ jump: `kink: ${kink.text}` });
        for (const candidate of series.rejected) if (candidate.after === at) lines.push({ jump: "candidate, rejected", small: [candidate.text] });
      });
      chart.series.forEach((series, s) => {
        if (shown[s] && !first && series.avoid.includes(at)) lines.push({ jump: `${single ? "" : `${series.name}: `}to avoid` });
      });
      return lines.length > 1 ? lines : [];
    };
    const table = () => ({
      heads: ["series", chart.x.name.toLowerCase(), title.toLowerCase(), `${chart.confidence} interval`, "steps", "jump after it"],
      rows: chart.series.flatMap((series) => series.x.map((at, i) => {
        const jump = series.jumps.find((found) => found.after === at);
        return [series.name, count(at), quantity(series.center[i] * of(at), unit),
          series.low[i] == null ? "" : range(series.low[i] * of(at), series.high[i] * of(at), unit), count(series.steps[i]), jump ? `${jump.size} (${jump.relative})` : ""];
      })),
    });
    const any = (test) => chart.series.some(test);
    const mark = single ? "--jump" : "--muted";
    const keys = [["band", single ? 0 : "--muted", `${chart.confidence} interval of each point`]];
    if (any((s) => s.jumps.length)) keys.push(["gap", mark, "jump"]);
    if (any((s) => s.jumps.some((j) => j.after_low < j.after_high))) keys.push(["places", mark, "places that a jump may have"]);
    if (any((s) => s.kinks.length)) keys.push(["diamond", mark, "kink"]);
    if (any((s) => s.rejected.length)) keys.push(["dash", "--muted", "candidate, rejected"]);
    if (any((s) => s.off.includes(true))) keys.push(["ring", mark, "off the curve"]);
    if (!log && any((s) => s.period)) keys.push(["teeth", "--period", "period"]);
    const shaded = any((s) => s.avoid.length) ? [["band", mark, "sizes to avoid"]] : null;
    const jumps = chart.series.reduce((sum, series) => sum + series.jumps.length, 0);
    return make(parent, {
      title, group, log, logY: log && first, x, y, series: chart.series.map((series, index) => ({ name: series.name, index })),
      fullX: padded(x, log), unit, labelX: chart.x.name, height: first ? 400 : 270, silent: !first, keys: first ? keys : shaded,
      summary: `${counted(chart.series.length, "series").replace("seriess", "series")}, ${counted(jumps, "jump")}.`,
      splitsX: (u, at, low, high) => {
        const most = u.bbox.width / devicePixelRatio / 52;
        return log ? logTicks(low, high, 2).filter((tick, i, all) => i % Math.ceil(all.length / most) === 0) : batchTicks(low, high, most);
      },
      rangeY, draw, tip, table: first ? table : null, itemName: item,
    });
  };

  const steps = document.getElementById("steps");
  for (const chart of data.steps) {
    const group = [];
    stepChart(steps, chart, () => 1, chart.y.name, group, true);
    if (chart.item) stepChart(steps, chart, (x) => 1 / x, `Time per ${chart.item}`, group, false);
    if (chart.thinned > 1) steps.append(element("p", { className: "note" }, `Every ${count(chart.thinned)}th point is shown; the tables and jumps.json have them all.`));
  }

  // ---- every step in the order of the run ----
  const honesty = (parent, run) => {
    const group = [];
    const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(share * (sorted.length - 1))))];
    const bands = run.blocks.map(([start, block], i) => ({ start, end: run.blocks[i + 1]?.[0] ?? run.of, block }));
    const stripes = (u) => {
      const { ctx } = u;
      ctx.fillStyle = color("--soft");
      bands.forEach((band, i) => {
        if (i % 2 === 0 || band.end < u.scales.x.min || band.start > u.scales.x.max) return;
        const left = u.valToPos(band.start, "x", true);
        ctx.fillRect(left, u.bbox.top, u.valToPos(band.end, "x", true) - left, u.bbox.height);
      });
    };
    const blockOf = (step) => bands.find((band) => step >= band.start && step < band.end)?.block;
    const draw = (u) => {
      stripes(u);
      const { ctx } = u;
      const r = devicePixelRatio;
      const [top, bottom] = [u.bbox.top, u.bbox.top + u.bbox.height];
      const radius = Math.min(2.4, Math.max(1, (0.5 * u.bbox.width) / r / run.step.length)) * r;
      const looks = [["--step", 0.5], ["--warmup", 0.65], ["--outlier", 0.95]];
      looks.forEach(([name, alpha], look) => {
        ctx.fillStyle = color(name);
        ctx.globalAlpha = alpha;
        run.step.forEach((step, i) => {
          const flags = run.flags[i];
          if ((flags & 1 ? 1 : flags & 2 ? 2 : 0) !== look || step < u.scales.x.min || step > u.scales.x.max || run.percent[i] == null) return;
          const level = u.valToPos(run.percent[i], "y", true);
          const at = u.valToPos(step, "x", true);
          if (level < top || level > bottom) {
            const [edge, way] = level < top ? [top, 1] : [bottom, -1];
            ctx.fillRect(at - r, edge + (way < 0 ? -5 * r : 0), 2 * r, 5 * r);
          } else ctx.fillRect(at - radius, level - radius, 2 * radius, 2 * radius);
        });
      });
      ctx.globalAlpha = 1;
      ctx.lineWidth = r;
      ctx.strokeStyle = color("--axis");
      ctx.beginPath();
      ctx.moveTo(u.bbox.left, u.valToPos(0, "y", true));
      ctx.lineTo(u.bbox.left + u.bbox.width, u.valToPos(0, "y", true));
      ctx.stroke();
      run.factors.forEach((factor, f) => {
        ctx.strokeStyle = run.factors.length > 1 ? seriesColor(f + 1) : color("--factor");
        ctx.lineWidth = 1.8 * r;
        ctx.beginPath();
        factor.step.forEach((step, i) => ctx.lineTo(u.valToPos(step, "x", true), u.valToPos(factor.percent[i], "y", true)));
        ctx.stroke();
      });
    };
    const rangeY = (min, max) => {
      const sorted = run.percent.filter((v, i) => v != null && run.step[i] >= min && run.step[i] <= max && !(run.flags[i] & 1)).sort((a, b) => a - b);
      if (!sorted.length) return [-1, 1];
      // Beside busy neighbours a few percent of the steps take many times as long: they stand at the edge, so that the rest can be read.
      const middle = quantile(sorted, 0.5);
      const spread = quantile(sorted.map((v) => Math.abs(v - middle)).sort((a, b) => a - b), 0.5);
      const shared = run.factors.flatMap((factor) => factor.percent);
      const within = (v) => Math.min(Math.max(v, middle - 15 * spread), middle + 15 * spread);
      const low = shared.reduce((a, b) => Math.min(a, b), within(quantile(sorted, 0.003)));
      const high = shared.reduce((a, b) => Math.max(a, b), within(quantile(sorted, 0.985)));
      const margin = Math.max(0.12 * (high - low), 0.05);
      return [Math.min(low, 0) - margin, Math.max(high, 0) + margin];
    };
    const fullX = [-0.01 * run.of, 1.01 * run.of];
    const splitsX = (u, at, low, high) => nice(Math.max(0, low), high, u.bbox.width / devicePixelRatio / 90).filter((tick) => Number.isInteger(tick));
    const kind = (flags) => (flags & 1 ? "warm-up" : flags & 2 ? "outlier" : null);
    const title = "Residual of each step";
    const keys = [["dot", "--step", "step"]];
    if (run.flags.some((f) => f & 1)) keys.push(["dot", "--warmup", "warm-up"]);
    if (run.flags.some((f) => (f & 2) && !(f & 1))) keys.push(["dot", "--outlier", "outlier, kept"]);
    if (run.factors.length === 1) keys.push(["line", "--factor", "common factor"]);
    if (run.factors.length > 1) keys.push(["line", "--muted", "common factors, each series in a colour of its own"]);
    make(parent, {
      title, group, x: run.step, y: [run.percent], series: [{ name: "residual", index: 0, color: "--step" }], fullX, unit: "%", labelX: "Step, in the order of the run",
      height: 340, splitsX, rangeY, draw, dense: true, keys, summary: `${counted(run.of, "step")}.`,
      tip: (idx) => {
        const step = run.step[idx];
        const block = blockOf(step);
        const lines = [{ title: `Step ${count(step + 1)} of ${count(run.of)}${block == null ? "" : `, block ${block + 1}`}` }];
        if (run.percent[idx] != null) lines.push({ text: `${run.percent[idx] > 0 ? "+" : ""}${run.percent[idx]} % against the median${kind(run.flags[idx]) ? `, ${kind(run.flags[idx])}` : ""}` });
        for (const factor of run.factors) {
          let i = factor.step.findIndex((at) => at > step) - 1;
          if (i < -1) i = factor.step.length - 1;
          if (i >= 0) lines.push({ text: `common factor ${factor.percent[i] > 0 ? "+" : ""}${digits(factor.percent[i])} \u00b1 ${digits(1.96 * factor.sd[i])} %` });
        }
        return lines;
      },
    });
    run.covariates.forEach((covariate, c) => {
      const { unit } = covariate.quantity;
      const known = covariate.values.filter((v) => v != null);
      const levels = [...new Set(known)].sort((a, b) => a - b);
      make(parent, {
        title: covariate.quantity.name, group, x: run.step, y: [covariate.values], series: [{ name: covariate.quantity.name, index: c + 1 }], fullX, unit,
        labelX: "Step, in the order of the run", height: 170, splitsX, dense: true, plain: true, levels: levels.length <= 4 ? levels : null,
        rangeY: () => {
          const [low, high] = [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))];
          const margin = (high - low || 0.1 * Math.abs(high) || 1) * 0.15;
          return [low - margin, high + margin];
        },
        draw: (u) => {
          stripes(u);
          const r = devicePixelRatio;
          u.ctx.fillStyle = seriesColor(c + 1);
          run.step.forEach((step, i) => {
            if (covariate.values[i] == null || step < u.scales.x.min || step > u.scales.x.max) return;
            u.ctx.fillRect(u.valToPos(step, "x", true) - r, u.valToPos(covariate.values[i], "y", true) - r, 2 * r, 2 * r);
          });
        },
        tip: (idx) => (covariate.values[idx] == null ? [] : [{ title: `Step ${count(run.step[idx] + 1)}` }, { text: quantity(covariate.values[idx], unit) }]),
      });
    });
    if (!run.covariates.length) parent.append(element("p", { className: "note" }, "No clock, temperature or link could be read."));
    if (run.stretch > 1) parent.append(element("p", { className: "note" }, `Of ${count(run.of)} steps, each stretch of ${count(run.stretch)} is shown by its lowest, its median and its highest.`));
  };
  for (const run of data.honesty) honesty(document.querySelector(`.honesty[data-run="${run.run}"]`), run);

  // ---- whole epochs ----
  const training = (parent, run) => {
    const pair = element("div", { className: "pair" });
    parent.append(pair);
    for (const panel of run.panels) {
      const { unit } = panel.y;
      const x = union(panel.lines.map((line) => line.x));
      const y = panel.lines.map((line) => x.map((value) => { const i = line.x.indexOf(value); return i < 0 ? null : line.y[i]; }));
      make(pair, {
        title: panel.y.name, group: [], log: panel.log, x, y, series: panel.lines.map((line, index) => ({ name: line.name, index })), fullX: padded(x, panel.log),
        unit, labelX: panel.x.name, height: 300, plain: true, summary: `Against ${panel.x.name.toLowerCase()}.`,
        splitsX: (u, at, low, high) => (x.length <= 10 ? x.filter((tick) => tick >= low && tick <= high) : panel.log ? logTicks(low, high, 2) : nice(low, high, 6)),
        rangeY: (min, max, shown) => {
          const values = panel.lines.flatMap((line, l) => (shown[l] ? line.y.flatMap((v, i) => [v - line.sd[i], v + line.sd[i]]) : []));
          if (!values.length) return [0, 1];
          const [low, high] = [Math.min(...values), Math.max(...values)];
          const margin = (high - low || Math.abs(high) || 1) * 0.1;
          return [panel.zero ? 0 : low - margin, high + margin];
        },
        draw: (u, shown) => {
          const { ctx } = u;
          const r = devicePixelRatio;
          panel.lines.forEach((line, l) => {
            if (!shown[l]) return;
            ctx.strokeStyle = ctx.fillStyle = seriesColor(l);
            const at = (i) => [u.valToPos(line.x[i], "x", true), u.valToPos(line.y[i], "y", true)];
            ctx.lineWidth = 1.8 * r;
            ctx.setLineDash(dashes(l).map((d) => d * r));
            ctx.beginPath();
            line.x.forEach((_, i) => ctx.lineTo(...at(i)));
            ctx.stroke();
            ctx.setLineDash([]);
            line.x.forEach((_, i) => {
              const [px, py] = at(i);
              ctx.beginPath();
              ctx.moveTo(px, u.valToPos(line.y[i] - line.sd[i], "y", true));
              ctx.lineTo(px, u.valToPos(line.y[i] + line.sd[i], "y", true));
              ctx.stroke();
              ctx.beginPath();
              ctx.arc(px, py, 3.4 * r, 0, 2 * Math.PI);
              ctx.fill();
              if (line.marked === i) {
                ctx.beginPath();
                ctx.arc(px, py, 7 * r, 0, 2 * Math.PI);
                ctx.stroke();
              }
            });
          });
        },
        tip: (idx, shown) => [{ title: `${panel.x.name} ${count(x[idx])}` }, ...panel.lines.flatMap((line, l) => {
          const i = line.x.indexOf(x[idx]);
          return shown[l] && i >= 0 ? [{ swatch: l, text: `${line.name}: ${quantity(line.y[i], unit)}${line.sd[i] ? ` \u00b1 ${quantity(line.sd[i], unit)}` : ""}` }] : [];
        })],
        table: () => ({
          heads: ["line", panel.x.name.toLowerCase(), panel.y.name.toLowerCase(), "standard deviation"],
          rows: panel.lines.flatMap((line) => line.x.map((at, i) => [line.name, count(at), quantity(line.y[i], unit), line.sd[i] ? quantity(line.sd[i], unit) : ""])),
        }),
      });
    }
    if (run.bars.length) bars(parent, run.bars);
  };
  // Where the time of an epoch goes.
  const bars = (parent, all) => {
    const longest = Math.max(...all.map((bar) => bar.parts.reduce((a, b) => a + b, 0)));
    const row = 40;
    const wide = narrow() ? 400 : 940;
    const most = wide - 80;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const add = (name, attributes, text) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      if (text) made.textContent = text;
      svg.append(made);
    };
    svg.setAttribute("class", "bars");
    svg.setAttribute("viewBox", `0 0 ${wide} ${all.length * row}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", all.map((bar) => `${bar.name}: training steps ${quantity(bar.parts[0], "s")}, waiting ${quantity(bar.parts[1], "s")}, rest ${quantity(bar.parts[2], "s")}`).join(". "));
    const fills = ["var(--series-0)", "var(--series-1)", "var(--warmup)"];
    all.forEach((bar, b) => {
      add("text", { x: 0, y: b * row + 13 }, bar.name);
      let left = 0;
      bar.parts.forEach((part, p) => {
        add("rect", { x: left, y: b * row + 19, width: Math.max(0, (part / longest) * most), height: 13, fill: fills[p] });
        left += (part / longest) * most;
      });
      add("text", { x: left + 7, y: b * row + 30 }, quantity(bar.parts.reduce((x, y) => x + y, 0), "s"));
    });
    const keys = [["solid", "--series-0", "training steps"], ["solid", "--series-1", "waiting for the loader"], ["solid", "--warmup", "rest"]];
    parent.append(element("figure", {}, element("figcaption", {}, element("strong", {}, "Where the time of an epoch goes")),
      element("ul", { className: "key" }, ...keys.map(([kind, index, text]) => element("li", {}, swatch(index, kind), text))), svg));
  };
  for (const run of data.training) training(document.querySelector(`.training[data-run="${run.run}"]`), run);

  // ---- size, colours, paper ----
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.redraw()));
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    charts.forEach((chart) => { chart.resize(Math.min(690, chart.figure.clientWidth)); chart.redraw(); });
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    charts.forEach((chart) => { chart.resize(); chart.redraw(); });
  });
  document.documentElement.dataset.ready = "true";
})();
