import { isCertificate, refused, TarryError } from "./error.js";
import { maxTimer, sleep } from "./time.js";

/** Thrown by a worker's function when no further attempt can succeed: the job is buried. */
export class BuryError extends Error {
  name = "BuryError";
}

// What a reason may have, in bytes.
const maxReason = 1000;

// A reservation is prolonged after this part of it.
const beatsPerTTR = 3;

// For how many seconds a stream is tried before onError learns that no node opens one: longer
// than a failover takes.
const unopenedAfter = 5;

// Codes of a touch that say that the reservation is over.
const lostCodes = new Set(["stale_token", "not_reserved", "not_found"]);

/**
 * Runs a function for the jobs of topics. They come over a stream whose credit is the number
 * of functions that may run: finishing a job brings the next one, without another call.
 */
export class Worker {
  #client;
  #topics;
  #handler;
  #options;
  #stop = new AbortController();
  /** Credit that no stream has: at first all of it. */
  #credit;
  #places;
  /** @type {Set<Promise<void>>} streams and jobs under way */
  #running = new Set();
  /** @type {() => void} */
  #wake = () => {};
  /** @type {unknown} */
  #failure;

  /**
   * @param {import("tarry").Client} client
   * @param {string | string[]} topics
   * @param {import("tarry").Handler<any>} handler
   * @param {import("tarry").WorkerOptions} [options]
   */
  constructor(client, topics, handler, options = {}) {
    const { concurrency = 1, timeout, signals = ["SIGTERM", "SIGINT"], onError = console.error } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000) {
      throw new TypeError(`concurrency is ${concurrency}; it must be between 1 and 1000`);
    }
    if (timeout !== undefined && !(timeout > 0)) {
      throw new TypeError(`timeout is ${timeout}; it must be above 0`);
    }
    this.#client = client;
    this.#topics = typeof topics === "string" ? [topics] : topics;
    this.#handler = handler;
    this.#options = { ...options, concurrency, signals, onError };
    this.#credit = concurrency;
    this.#places = new Places(concurrency);
    this.#stop.signal.addEventListener("abort", () => {
      this.#places.close();
      this.#wake();
    });
  }

  /** Takes no more jobs; run() returns when those that run are done. */
  stop() {
    this.#stop.abort();
  }

  /** Works until stop() or a signal, and until the functions that then run have ended. */
  async run() {
    const { signals, signal } = this.#options;
    const stop = () => this.stop();
    signals.forEach((name) => process.once(name, stop));
    signal?.addEventListener("abort", stop);
    if (signal?.aborted) {
      stop();
    }
    try {
      while (!this.#stop.signal.aborted) {
        // The jobs of a connection that broke keep their credit until they are done.
        const credit = this.#credit;
        this.#credit = 0;
        if (credit > 0) {
          this.#start(this.#read(credit));
        }
        await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
      }
      while (this.#running.size > 0) {
        await Promise.all(this.#running);
      }
    } finally {
      signals.forEach((name) => process.removeListener(name, stop));
      signal?.removeEventListener("abort", stop);
    }
    if (this.#failure) {
      throw this.#failure;
    }
  }

  /** @param {Promise<void>} task */
  #start(task) {
    const tracked = task.then(() => {
      this.#running.delete(tracked);
    });
    this.#running.add(tracked);
  }

  /** @param {number} credit */
  #giveBack(credit) {
    this.#credit += credit;
    this.#wake();
  }

  /**
   * Reads one connection, and starts its jobs.
   *
   * @param {number} credit
   */
  async #read(credit) {
    const { ttr, consumer, heartbeat } = this.#options;
    let open = true;
    let unfinished = 0;
    try {
      const stream = this.#client.stream(
        { topics: this.#topics, credit, ttr, consumer, heartbeat },
        { signal: this.#stop.signal, patience: unopenedAfter, reconnect: false },
      );
      for await (const job of stream) {
        unfinished++;
        this.#start(
          this.#work(job).then(() => {
            unfinished--;
            if (!open) {
              this.#giveBack(1);
            }
          }),
        );
      }
    } catch (error) {
      if (mayPass(error)) {
        this.#report(error);
      } else {
        this.#failure = error; // the nodes refuse the stream
        this.stop();
      }
    }
    open = false;
    this.#giveBack(Math.max(credit - unfinished, 0));
  }

  /**
   * Does one job: everything from its reservation to the end of it. It never rejects.
   *
   * @param {import("tarry").ReservedJob<any>} job
   */
  async #work(job) {
    const done = new AbortController();
    const ended = new AbortController();
    const beat = this.#beat(job, done.signal, ended);
    // There is a place, unless a reservation was lost while its function still runs.
    const placed = await this.#places.take();
    let end;
    if (!placed) {
      end = () => this.#client.release(job, { delay: 0, reason: "the worker stops" });
    } else {
      const timeout = this.#timeout(done, ended);
      try {
        await this.#handler(job, { signal: ended.signal, stopping: this.#stop.signal });
        end = () => this.#client.finish(job);
      } catch (error) {
        const late = ended.signal.aborted && ended.signal.reason === timeout.error;
        const failure = late && !(error instanceof BuryError) ? timeout.error : error;
        this.#report(failure, job);
        end = () => this.#fail(job, failure);
      } finally {
        clearTimeout(timeout.timer);
      }
    }
    done.abort();
    await beat;
    try {
      await end();
    } catch (error) {
      this.#report(error, job);
    }
    if (placed) {
      this.#places.give();
    }
  }

  /**
   * Tells a function that runs for too long, and ends the touches.
   *
   * @param {AbortController} done
   * @param {AbortController} ended
   * @returns {{ error?: DOMException, timer?: ReturnType<typeof setTimeout> }}
   */
  #timeout(done, ended) {
    const { timeout } = this.#options;
    if (timeout === undefined) {
      return {};
    }
    const error = new DOMException(`timed out after ${timeout} s`, "TimeoutError");
    const late = () => {
      done.abort();
      ended.abort(error);
    };
    return { error, timer: setTimeout(late, Math.min(timeout * 1000, maxTimer)) };
  }

  /**
   * Gives a job back, or buries it, because its function failed.
   *
   * @param {import("tarry").ReservedJob} job
   * @param {any} error
   */
  #fail(job, error) {
    const reason = shorten(textOf(error));
    if (error instanceof BuryError) {
      return this.#client.bury(job, { reason });
    }
    const { backoff } = this.#options;
    if (!backoff) {
      return this.#client.release(job, { reason });
    }
    const { base, factor = 2, max = 3600 } = backoff;
    const delay = Math.min(base * factor ** (job.attempts - 1), max);
    return this.#client.release(job, { reason, delay: Math.round(delay * 1000) / 1000 });
  }

  /**
   * Prolongs a reservation until the job is done.
   *
   * @param {import("tarry").ReservedJob} job
   * @param {AbortSignal} done
   * @param {AbortController} ended
   */
  async #beat(job, done, ended) {
    const { ttr } = this.#options;
    const period = (ttr ?? job.ttr) / beatsPerTTR;
    // A node that does not respond must not take the time of the next one.
    const limits = { timeout: Math.min(period, 10), patience: Math.min(period, 30) };
    while (await sleep(period * 1000, done)) {
      try {
        await this.#client.touch(job, { ttr, signal: done, ...limits });
      } catch (error) {
        if (done.aborted) {
          return;
        }
        this.#report(error, job);
        if (error instanceof TarryError && lostCodes.has(error.code)) {
          ended.abort(error);
          return;
        }
      }
    }
  }

  /** @param {unknown} error @param {import("tarry").ReservedJob} [job] */
  #report(error, job) {
    try {
      this.#options.onError(error, job);
    } catch {
      // The worker goes on whatever becomes of the report.
    }
  }
}

/** Whether a stream that could not be opened may be later. @param {unknown} error */
function mayPass(error) {
  return error instanceof TarryError && !isCertificate(error) && (refused(error) || error.outcome === "unknown");
}

/** The places for functions that run. */
class Places {
  #free;
  #closed = false;
  /** @type {((placed: boolean) => void)[]} */
  #waiting = [];

  /** @param {number} free */
  constructor(free) {
    this.#free = free;
  }

  /** @returns {Promise<boolean>} false when there will be no place */
  async take() {
    if (this.#closed || this.#free > 0) {
      this.#free -= this.#closed ? 0 : 1;
      return !this.#closed;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  give() {
    const next = this.#waiting.shift();
    if (next) {
      next(true);
    } else {
      this.#free++;
    }
  }

  /** Those that wait get no place. */
  close() {
    this.#closed = true;
    this.#waiting.splice(0).forEach((resolve) => resolve(false));
  }
}

/** What an error says, whatever was thrown. @param {any} error */
function textOf(error) {
  try {
    return String(error?.message ?? error);
  } catch {
    return "the function has failed";
  }
}

/** A text of at most so many bytes as a reason may have. @param {string} text */
function shorten(text) {
  const bytes = Buffer.from(text).subarray(0, maxReason);
  return new TextDecoder().decode(bytes, { stream: true }); // without a character that was cut
}
