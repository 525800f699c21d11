// Draws the charts of a report from the JSON in the page. Without it the page still reads: every
// chart has its figures as a table, which this script folds away.
(() => {
  "use strict";

  const charts = JSON.parse(document.getElementById("charts").textContent);
  const kColours = 6;
  const kNarrow = 520;
  const kHeight = 320;
  const kXAxis = 32;
  const kPrintWidth = 680;
  const kFont = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colourOf = (index) => css(`--series-${(index % kColours) + 1}`);

  // Three digits are enough to compare by; more only for what is exact.
  const figure = (value) => {
    if (value == null) return "–";
    const size = Math.abs(value);
    const decimals = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    return value.toLocaleString("en", {
      minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  };
  const tick = (value) =>
    value == null ? "" : value.toLocaleString("en", { maximumFractionDigits: 6 });

  // Percentile ↔ place on the tail scale.
  const tailX = (quantile) => -Math.log10(1 - quantile);
  const percentile = (x) => {
    const decimals = Math.max(0, Math.ceil(x - 2)) + 1;
    return "P" + String(+(100 * (1 - 10 ** -x)).toFixed(decimals));
  };
  const kTailTicks = [[0, "P0"], [tailX(0.5), "P50"], [tailX(0.75), "P75"], [1, "P90"],
    [tailX(0.95), "P95"], [2, "P99"], [3, "P99.9"], [4, "P99.99"], [5, "P99.999"]];
  const kBetween = new Set(["P0", "P75", "P95"]);  // the first to go when there is little room

  // uPlot wants one x for all series. The series get a value at every x within their own range, on
  // the straight line that is drawn anyway; dots are left where they are.
  const align = (series) => {
    const xs = [...new Set(series.flatMap((s) => s.xs))].sort((a, b) => a - b);
    const columns = series.map((s) => {
      let after = 0;
      return xs.map((x) => {
        while (after < s.xs.length && s.xs[after] < x) ++after;
        if (after === s.xs.length) return null;
        if (s.xs[after] === x) return s.ys[after];
        if (after === 0 || s.line === "markers") return null;
        const [from, to] = [s.ys[after - 1], s.ys[after]];
        if (from == null || to == null) return null;
        const share = (x - s.xs[after - 1]) / (s.xs[after] - s.xs[after - 1]);
        return from + share * (to - from);
      });
    });
    return [xs, ...columns];
  };

  const seriesOptions = (series, index) => {
    const colour = colourOf(index);
    const options = {
      label: series.unit ? `${series.name} (${series.unit})` : series.name,
      scale: series.side || "y",
      stroke: colour,
      width: 2,
      value: (_, value) => figure(value),
      points: { show: false },
    };
    if (series.line === "dashed" || index >= kColours) options.dash = [7, 5];
    if (series.line === "markers") {
      options.paths = () => null;
      options.points = { show: true, size: 8, width: 2, stroke: colour, fill: css("--page") };
    }
    // A lone point makes no line.
    if (series.xs.length === 1) options.points = { show: true, size: 6 };
    return options;
  };

  const axis = (scale, more) => ({
    scale,
    stroke: css("--muted"),
    font: kFont,
    labelFont: kFont,
    labelSize: 20,
    labelGap: 2,
    grid: { stroke: css("--grid"), width: 1 },
    ticks: { stroke: css("--grid"), width: 1, size: 5 },
    ...more,
  });

  // Never cuts off a label: as wide as the widest figure on the axis.
  const axisSize = (u, values, index, cycle) => {
    const axes = u.axes[index];
    if (cycle > 1) return axes._size;
    const longest = (values || []).reduce((most, v) => Math.max(most, (v || "").length), 0);
    return axes.ticks.size + axes.gap + 8 + longest * 7;
  };

  const base = (width, height) => ({
    width,
    height,
    legend: {
      live: true,
      markers: { width: 0, fill: (u, index) => u.series[index].stroke(u, index) },
    },
    cursor: { points: { size: 7 }, drag: { x: false, y: false } },
  });

  const drawCurves = (chart, place, width, log) => {
    const series = chart.series.map((s) => ({ ...s, xs: s.q.map(tailX), ys: s.ms }));
    const data = align(series);
    const ys = series.flatMap((s) => s.ys).filter((y) => y != null && (!log || y > 0));
    if (ys.length === 0) ys.push(1);
    const xMost = Math.max(1.05, ...data[0]);
    const most = Math.max(...ys, log ? 1e-3 : 0);
    const yRange = log ? [10 ** Math.floor(Math.log10(Math.min(...ys))), most * 1.3]
                       : [0, most * 1.06 || 1];
    // A logarithmic scale has no place for 0.
    if (log) {
      data.splice(1, Infinity, ...data.slice(1).map((c) => c.map((y) => (y > 0 ? y : null))));
    }
    const wide = width / xMost > 190;
    const ticks = kTailTicks.filter(([x, name]) => x <= xMost && (wide || !kBetween.has(name)));
    const names = new Map(ticks);
    return new uPlot({
      ...base(width, kHeight),
      scales: {
        x: { time: false, range: [0, xMost] },
        y: { distr: log ? 3 : 1, range: yRange },
      },
      axes: [
        axis("x", {
          size: kXAxis,
          splits: ticks.map(([x]) => x),
          values: (_, xs) => xs.map((x) => names.get(x)),
          filter: (_, xs) => xs,
        }),
        axis("y", { size: axisSize, label: width < kNarrow ? undefined : "ms",
          values: (_, ticks) => ticks.map(tick) }),
      ],
      series: [{ label: "percentile", value: (_, x) => (x == null ? "–" : percentile(x)) },
        ...series.map((s, i) => ({ ...seriesOptions(s, i), spanGaps: false,
          label: width < kNarrow ? `${s.name} (ms)` : s.name }))],
    }, data, place);
  };

  const drawMarks = (chart) => (u) => {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.font = kFont.replace("12px", `${12 * ratio}px`);
    ctx.lineWidth = ratio;
    ctx.textBaseline = "middle";
    const line = (x1, y1, x2, y2, dash) => {
      ctx.setLineDash(dash.map((d) => d * ratio));
      ctx.beginPath();
      ctx.moveTo(x1, y1);
      ctx.lineTo(x2, y2);
      ctx.stroke();
    };
    const write = (text, x, y) => {
      ctx.lineWidth = 4 * ratio;
      ctx.strokeStyle = css("--page");
      ctx.setLineDash([]);
      ctx.strokeText(text, x, y);
      ctx.fillText(text, x, y);
      ctx.lineWidth = ratio;
    };
    for (const level of chart.levels) {
      const y = u.valToPos(level.value, level.side, true);
      if (!(y >= top && y <= top + height)) continue;
      ctx.strokeStyle = ctx.fillStyle = css("--warn");
      line(left, y, left + width, y, [2, 4]);
      ctx.textAlign = level.side === "right" ? "right" : "left";
      write(level.label, level.side === "right" ? left + width - 6 * ratio : left + 6 * ratio,
        y - 8 * ratio);
    }
    const rowsEnd = [];  // where the last label of each row ends, so that labels do not overlap
    for (const [seconds, label] of chart.events) {
      const x = u.valToPos(seconds, "x", true);
      if (!(x >= left && x <= left + width)) continue;
      const space = 5 * ratio;
      const wide = ctx.measureText(label).width;
      const flipped = x + space + wide > left + width && x - space - wide > left;
      const start = flipped ? x - space - wide : x + space;
      let row = rowsEnd.findIndex((end) => end < start);
      if (row < 0) row = rowsEnd.length;
      rowsEnd[row] = start + wide + space;
      ctx.strokeStyle = css("--muted");
      line(x, top, x, top + height, [5, 4]);
      ctx.fillStyle = css("--ink");
      ctx.textAlign = "left";
      write(label, start, top + (10 + row * 16) * ratio);
    }
    ctx.restore();
  };

  const sideAxis = (chart, side, width) => {
    const here = chart.series.map((s, index) => ({ ...s, index })).filter((s) => s.side === side);
    if (here.length === 0) return null;
    const [first] = here;
    const name = here.length === 1 ? `${first.name}, ${first.unit}`
                                   : [...new Set(here.map((s) => s.unit))].join(", ");
    return axis(side, {
      side: side === "left" ? 3 : 1,
      size: axisSize,
      label: width < kNarrow ? undefined : name,
      ...(here.length === 1 ? { stroke: colourOf(first.index) } : {}),
      ...(side === "right" ? { grid: { show: false } } : {}),
      values: (_, ticks) => ticks.map(tick),
    });
  };

  const drawTimeline = (chart, place, width) => {
    const series = chart.series.map((s) => ({ ...s, xs: s.s, ys: s.v }));
    const data = align(series);
    const xs = [...data[0], ...chart.events.map(([seconds]) => seconds)];
    const [first, last] = [Math.min(...xs), Math.max(...xs)];
    const range = (side) => (_, least, most) => {
      const levels = chart.levels.filter((l) => l.side === side).map((l) => l.value);
      const top = Math.max(most ?? 0, 0, ...levels);
      const bottom = Math.min(least ?? 0, 0, ...levels);
      return top === bottom ? [0, 1] : [bottom, top + (top - bottom) * 0.12];
    };
    return new uPlot({
      ...base(width, kHeight),
      scales: {
        x: { time: false, range: first < last ? [first, last] : [first - 1, first + 1] },
        left: { range: range("left") },
        right: { range: range("right") },
      },
      axes: [
        axis("x", {
          size: kXAxis,
          values: (_, ticks) => ticks.map((t) => (t == null ? "" : `${tick(t)} s`)),
        }),
        sideAxis(chart, "left", width),
        sideAxis(chart, "right", width),
      ].filter(Boolean),
      series: [{ label: "time", value: (_, x) => (x == null ? "–" : `${figure(x)} s`) },
        ...series.map(seriesOptions)],
      hooks: { draw: [drawMarks(chart)] },
    }, data, place);
  };

  const has = (chart) => chart.series.some((s) => (s.ms || s.v).some((value) => value != null));

  const figures = [...document.querySelectorAll("figure[data-chart]")].flatMap((figure) => {
    const chart = charts[Number(figure.dataset.chart)];
    const place = figure.querySelector(".plot");
    if (!has(chart)) return [];
    const state = { plot: null, width: 0, log: chart.log_y };
    state.draw = (width) => {
      if (state.plot) state.plot.destroy();
      state.width = width;
      state.plot = chart.kind === "curve" ? drawCurves(chart, place, width, state.log)
                                          : drawTimeline(chart, place, width);
    };
    if (chart.kind === "curve") {
      const input = document.createElement("input");
      input.type = "checkbox";
      input.checked = chart.log_y;
      input.addEventListener("change", () => {
        state.log = input.checked;
        state.draw(state.width);
      });
      const label = document.createElement("label");
      label.append(input, "logarithmic");
      figure.querySelector(".chart-head").append(label);
    }
    figure.querySelector("details").open = false;
    const fit = () => {
      const width = Math.floor(place.clientWidth);
      if (width > 0 && width !== state.width) state.draw(width);
    };
    fit();
    // In the next frame: drawing inside the observer would resize what it observes.
    new ResizeObserver(() => requestAnimationFrame(fit)).observe(place);
    return [state];
  });

  const redraw = (width) => figures.forEach((f) => f.width > 0 && f.draw(width || f.width));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  // Canvases keep the colours and the size they were drawn with: paper gets light ones that fit.
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("light");
    redraw(kPrintWidth);
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("light");
    figures.forEach((f) => f.width > 0 && f.draw(Math.floor(f.plot.root.parentNode.clientWidth)));
  });
})();
