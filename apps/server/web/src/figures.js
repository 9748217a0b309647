// A reply's ledger -> the figures that the page shows. Every one is measured or counted by the engine; here they are only
// added up and divided (docs/ledger.md has their meaning).

const sum = (entries, of) => entries.reduce((total, entry) => total + (of(entry) ?? 0), 0);

export const operations = (entry) => (entry.integer_operations ?? 0) + (entry.float_operations ?? 0);
export const bytes = (entry) => (entry.weights_bytes ?? 0) + (entry.cache_read_bytes ?? 0) + (entry.cache_write_bytes ?? 0);
export const ownRows = (entry) => entry.rows ?? 0;
export const stepRows = (entry) => entry.whole_step.prefill_rows + entry.whole_step.decode_rows;

export function stageFigures(ledger, stage) {
  const entries = ledger.filter((entry) => entry.stage === stage);
  const tokens = sum(entries, ownRows);
  const ms = sum(entries, (entry) => entry.whole_step.ms);
  const work = sum(entries, operations);
  const moved = sum(entries, bytes);
  // The share of a limit, weighed by time: that of the steps, which all their sequences share.
  const share = (name) => (ms > 0 ? sum(entries, (entry) => entry.whole_step[name] * entry.whole_step.ms) / ms : 0);
  const ofCompute = share("of_compute_peak"), ofMemory = share("of_memory_peak");
  return {
    stage, tokens, passes: entries.length, ms, operations: work, bytes: moved, ofCompute, ofMemory,
    cached: sum(entries, (entry) => entry.cached_tokens),
    tokensPerSecond: ms > 0 ? (tokens * 1000) / ms : 0,
    bytesPerToken: tokens > 0 ? moved / tokens : 0,
    intensity: moved > 0 ? work / moved : 0,
    operationsPerSecond: ms > 0 ? (work * 1000) / ms : 0,
    boundBy: ofCompute > ofMemory ? "arithmetic" : "memory",
    shared: entries.filter((entry) => entry.whole_step.sequences > 1).length,
  };
}

const kUnits = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function amount(value, unit = "") {
  const [size, letter] = kUnits.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  const scaled = value / size;
  const digits = scaled >= 100 || Number.isInteger(scaled) ? 0 : scaled >= 10 ? 1 : 2;
  return `${scaled.toFixed(digits)} ${letter}${unit}`.trimEnd();
}

export function milliseconds(value) {
  if (value >= 10000) return `${(value / 1000).toFixed(1)} s`;
  return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ms`;
}

export const percent = (share) => `${(100 * share).toFixed(share >= 0.1 || share === 0 ? 0 : share >= 0.01 ? 1 : 2)} %`;
export const probability = (logprob) => (logprob === undefined || logprob === null ? undefined : Math.exp(logprob));

// A token as it can be read: what has no shape of its own is named.
export function visible(text, bytes) {
  if (text === "" || text.includes("\uFFFD"))
    return (bytes ?? []).map((byte) => `<${byte.toString(16).padStart(2, "0")}>`).join("") || "∅";
  return text.replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll("\r", "␍").replaceAll(/^ | $/g, "·");
}
