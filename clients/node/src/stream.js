import { refused, resultError, TarryError, unknown } from "./error.js";
import { reserved, unlike } from "./reply.js";
import { Deadline, sleep } from "./time.js";
import { fromWire, toWire } from "./wire.js";

/** @typedef {import("./transport.js").Transport} Transport */

// How many heartbeats may be missing before a node counts as failed.
const silentBeats = 3;

// The longest line, in characters: the largest body in its widest form.
const maxLine = 32 << 20;

// The pause before the next connection, in ms.
const reconnectPause = 50;

/**
 * Jobs as they become ready, as an async iterator. It reads no job ahead: while the body of
 * the loop runs, what the node sends waits in the connection.
 */
export class Stream {
  #stop;
  #jobs;

  /**
   * @param {Transport} transport
   * @param {import("tarry").StreamRequest} want
   * @param {import("tarry").StreamOptions} [options]
   */
  constructor(transport, want, options) {
    this.#stop = new Deadline(options?.signal);
    this.#jobs = read(transport, want, { ...options, signal: this.#stop.signal });
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async next() {
    const result = await this.#jobs.next();
    if (result.done) {
      this.#stop.close();
    }
    return result;
  }

  /** Closes the connection; a next() that waits ends. */
  async return() {
    this.#stop.abort();
    return this.#jobs.return();
  }
}

/**
 * Reads one connection after the other.
 *
 * @param {Transport} transport
 * @param {import("tarry").StreamRequest} want
 * @param {import("tarry").StreamOptions & {signal: AbortSignal}} options
 */
async function* read(transport, { max, ...want }, { reconnect = true, signal, ...options }) {
  for (let left = max; !signal.aborted; ) {
    const body = toWire({ ...want, max: left });
    let connection;
    try {
      connection = await connect(transport, body, { ...options, signal });
      for await (const job of connection) {
        yield job;
        if (left !== undefined && --left <= 0) {
          return;
        }
      }
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      const lost = connection && error instanceof TarryError && (refused(error) || error.outcome === "unknown");
      if (!lost) {
        throw error;
      }
    }
    if (!reconnect) {
      return;
    }
    await sleep(reconnectPause, signal);
  }
}

/**
 * Opens a stream at a node that accepts it.
 *
 * @param {Transport} transport
 * @param {unknown} body
 * @param {import("tarry").CallOptions & {signal: AbortSignal}} options
 */
async function connect(transport, body, options) {
  /** @type {import("./transport.js").Request} */
  const request = { method: "POST", path: "/v1/stream", body: () => body, repeat: true };
  const { value } = await transport.retry(request, options, async (node, limit, caller) => {
    const deadline = new Deadline(caller);
    try {
      deadline.set(limit, `no response in ${limit} s`);
      const response = await transport.open(node, request, body, deadline.signal, caller);
      const events = readEvents(transport, node, response, deadline, caller);
      const opened = await events.next();
      if (opened.value?.event !== "open") {
        throw unknown(`the stream of ${node} ended before it was open`);
      }
      deadline.pause();
      return readJobs(transport, node, events, opened.value.heartbeat, deadline);
    } catch (error) {
      deadline.abort();
      throw error;
    }
  });
  return value;
}

/**
 * The jobs of one connection, until it ends.
 *
 * @param {Transport} transport
 * @param {string} node
 * @param {AsyncGenerator<any>} events
 * @param {number} heartbeat
 * @param {Deadline} deadline
 */
async function* readJobs(transport, node, events, heartbeat, deadline) {
  try {
    for (;;) {
      // Only the node's silence counts, not how long the caller takes.
      deadline.set(silentBeats * heartbeat, `no heartbeat in ${silentBeats * heartbeat} s`);
      const { value: event, done } = await events.next();
      deadline.pause();
      if (done || event.event === "bye") {
        transport.nodes.failed(node, false); // it stops, most likely
        return;
      }
      if (event.event === "error") {
        throw resultError(event);
      }
      if (event.event === "job") {
        const wrong = unlike(reserved, event);
        if (wrong) {
          throw transport.lost(node, new Error(`a line is not understood: ${wrong}`));
        }
        const { event: _, ...job } = event;
        yield fromWire(job);
      }
    }
  } finally {
    deadline.abort(); // closes the connection
  }
}

/**
 * The lines of one connection, parsed. It ends when the node closes the connection.
 *
 * @param {Transport} transport
 * @param {string} node
 * @param {Response} response
 * @param {Deadline} deadline
 * @param {AbortSignal} [caller]
 */
async function* readEvents(transport, node, response, deadline, caller) {
  const decoder = new TextDecoder();
  let rest = "";
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  // The read that waits ends with the deadline, even where fetch does not see to it (Node 18).
  deadline.signal.addEventListener("abort", () => reader.cancel().catch(() => {}), { once: true });
  try {
    for (;;) {
      const { value: chunk, done } = await reader.read();
      deadline.signal.throwIfAborted();
      if (done) {
        return;
      }
      const lines = decoder.decode(chunk, { stream: true }).split("\n");
      lines[0] = rest + lines[0];
      rest = /** @type {string} */ (lines.pop());
      for (const line of lines) {
        yield JSON.parse(line);
      }
      if (rest.length > maxLine) {
        throw new Error(`a line is longer than ${maxLine} characters`);
      }
    }
  } catch (cause) {
    throw transport.lost(node, deadline.signal.aborted ? deadline.signal.reason : cause, caller);
  }
}
