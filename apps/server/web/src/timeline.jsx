// Every step of the runs around this one, a lane each, on one clock. Where a chunk of one prompt and decode steps of others
// share a step, they stand above each other at the same place.

import {useEffect, useRef, useState} from "preact/hooks";
import {milliseconds} from "./figures.js";

const kLane = 26, kGap = 6, kAxis = 18, kLeft = 2;

const span = (entry) => [entry.began_ms, entry.began_ms + entry.whole_step.ms];

// The run itself and those whose steps overlap its own, oldest first.
function neighbours(run, runs) {
  if (run.ledger.length === 0) return [run];
  const from = span(run.ledger[0])[0], to = span(run.ledger.at(-1))[1];
  const overlaps = (other) => other.ledger.length > 0 && span(other.ledger[0])[0] <= to && span(other.ledger.at(-1))[1] >= from;
  return runs.filter((other) => other === run || overlaps(other)).slice(-6);
}

export function Timeline({run, runs}) {
  const canvas = useRef();
  const [pointed, point] = useState();
  const [width, setWidth] = useState(640);
  const lanes = neighbours(run, runs);
  const height = lanes.length * (kLane + kGap) + kAxis;
  const begins = run.ledger.length ? span(run.ledger[0])[0] : 0, ends = run.ledger.length ? span(run.ledger.at(-1))[1] : 1;
  const scale = (width - 2 * kLeft) / Math.max(1, ends - begins);

  useEffect(() => {
    const observer = new ResizeObserver(([{contentRect}]) => setWidth(Math.max(200, contentRect.width)));
    observer.observe(canvas.current.parentElement);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current, ratio = window.devicePixelRatio || 1;
    element.width = width * ratio;
    element.height = height * ratio;
    const draw = element.getContext("2d");
    draw.scale(ratio, ratio);
    const style = getComputedStyle(element);
    const colour = (name) => style.getPropertyValue(name).trim();
    lanes.forEach((lane, row) => {
      const top = row * (kLane + kGap);
      draw.fillStyle = colour("--lane");
      draw.fillRect(0, top, width, kLane);
      for (const entry of lane.ledger) {
        const [from, to] = span(entry);
        if (to < begins || from > ends) continue;
        const x = kLeft + (from - begins) * scale, w = Math.max(1, (to - from) * scale - (scale * (to - from) > 3 ? 1 : 0));
        draw.globalAlpha = lane === run ? 1 : 0.55;
        draw.fillStyle = colour(entry.stage === "prefill" ? "--prefill" : "--decode");
        const rows = entry.whole_step.prefill_rows + entry.whole_step.decode_rows;
        const part = Math.max(0.2, entry.rows / Math.max(1, rows));  // its share of the step's rows, never too thin to see
        draw.fillRect(x, top + kLane * (1 - part), w, kLane * part);
        draw.globalAlpha = 1;
      }
    });
    draw.fillStyle = colour("--quiet");
    draw.font = "11px system-ui, sans-serif";
    draw.fillText("0", 0, height - 5);
    const label = milliseconds(ends - begins);
    draw.fillText(label, width - draw.measureText(label).width, height - 5);
  });

  const find = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const at = begins + (event.clientX - box.left - kLeft) / scale;
    const lane = lanes[Math.floor((event.clientY - box.top) / (kLane + kGap))];
    return lane?.ledger.find((entry) => span(entry)[0] <= at && at <= span(entry)[1] + 1 / scale);
  };
  const steps = run.ledger.length, shared = run.ledger.filter((entry) => entry.whole_step.sequences > 1).length;
  return (
    <figure class="timeline">
      <div>
        <canvas ref={canvas} style={{width: `${width}px`, height: `${height}px`}} role="img"
          aria-label={`${steps} steps in ${milliseconds(ends - begins)}, ${shared} of them shared with other requests; ${lanes.length} ${lanes.length === 1 ? "lane" : "lanes"}`}
          onMouseMove={(event) => point(find(event))} onMouseLeave={() => point(undefined)} />
      </div>
      <figcaption>{pointed ? describe(pointed) : (
        <><span class="key prefill" /> prefill <span class="key decode" /> decode{lanes.length > 1 ? `; ${lanes.length} requests, this one bright` : ""}. A bar is a step, as high as this request's share of its rows.</>
      )}</figcaption>
    </figure>
  );
}

function describe(entry) {
  const {ms, sequences, prefill_rows, decode_rows} = entry.whole_step;
  const rows = entry.rows === 1 ? "1 row" : `${entry.rows} rows`;
  const others = sequences > 1 ? `; the step ran ${prefill_rows} prompt rows and ${decode_rows} decode rows of ${sequences} requests together` : "";
  return `Step ${entry.step}: ${entry.stage}, ${rows} from position ${entry.first_position}, ${milliseconds(ms)}${others}.`;
}
