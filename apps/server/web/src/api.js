// The server that this page came from, and nobody else. Errors carry the server's own message.

let key = "";
try {
  key = sessionStorage.getItem("couplet-key") ?? "";
} catch {
  // A browser that keeps nothing: the key lasts as long as the page.
}

export function setKey(text) {
  key = text.trim();
  try {
    sessionStorage.setItem("couplet-key", key);
  } catch {
    // As above.
  }
}

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function request(path, body, signal) {
  const headers = {};
  if (key) headers.authorization = `Bearer ${key}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {method: body === undefined ? "GET" : "POST", headers, signal,
                                  body: body === undefined ? undefined : JSON.stringify(body)});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server can't be reached.", 0);
  }
  if (response.ok) return response;
  let message = `The server answered ${response.status}.`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // No JSON: the status says it.
  }
  throw new ApiError(message, response.status);
}

export const get = async (path) => (await request(path)).json();
export const post = async (path, body, signal) => (await request(path, body, signal)).json();

// Calls `on` with each event of a stream until it ends. A stream that ends without [DONE] was cut.
export async function stream(path, body, on, signal) {
  const response = await request(path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) throw new ApiError("The connection ended before the reply did.", 0);
    held += value;
    const events = held.split("\n\n");
    held = events.pop();
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
      if (data === "[DONE]") return;
      if (!data) continue;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ApiError(chunk.error.message, response.status);
      on(chunk);
    }
  }
}
