// A timer takes 24.8 days at most.
export const maxTimer = 2 ** 31 - 1;

const byDeadline = "the deadline ended the call";

/** Monotonic time, in ms. */
export const now = () => performance.now();

/**
 * What ended a call whose signal is aborted.
 *
 * @param {AbortSignal} signal
 */
export const whyEnded = (signal) => (signal.reason?.message === byDeadline ? byDeadline : "the call was cancelled");

/**
 * When a wait that begins now ends, in ms: early enough for its response to come before the
 * deadline. Both are in seconds from now.
 *
 * @param {number} wait
 * @param {number} [deadline]
 */
export const waitEnd = (wait, deadline = Infinity) =>
  now() + Math.min(wait, deadline - Math.min(deadline / 4, maxMargin)) * 1000;

// In seconds.
const maxMargin = 0.5;

/**
 * Waits; false when the signal was aborted meanwhile.
 *
 * @param {number} ms
 * @param {AbortSignal} [signal]
 * @returns {Promise<boolean>}
 */
export function sleep(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve(false);
      return;
    }
    const timer = setTimeout(end, Math.min(ms, maxTimer), true);
    const abort = () => end(false);
    signal?.addEventListener("abort", abort);
    /** @param {boolean} slept */
    function end(slept) {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      resolve(slept);
    }
  });
}

/** An abort signal that follows another one, and can be aborted after a time that may be set anew. */
export class Deadline {
  #controller = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #parent;
  #follow = () => this.#controller.abort(this.#parent?.reason);

  /** @param {AbortSignal} [parent] */
  constructor(parent) {
    this.#parent = parent;
    if (parent?.aborted) {
      this.#follow();
    }
    parent?.addEventListener("abort", this.#follow);
  }

  get signal() {
    return this.#controller.signal;
  }

  /** @param {number} seconds @param {string} what */
  set(seconds, what) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.abort(new Error(what)), Math.min(seconds * 1000, maxTimer));
  }

  /** Ends a call after so many seconds. @param {number} seconds */
  end(seconds) {
    if (seconds > 0) {
      this.set(seconds, byDeadline);
    } else {
      this.abort(new Error(byDeadline));
    }
  }

  pause() {
    clearTimeout(this.#timer);
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    this.#controller.abort(reason);
    this.close();
  }

  /** Gives back the timer and the listener. */
  close() {
    clearTimeout(this.#timer);
    this.#parent?.removeEventListener("abort", this.#follow);
  }
}

/** The pause after a round over the nodes, in ms: 50, doubling up to a second. @param {number} round */
export const backoff = (round) => Math.min(50 * 2 ** Math.min(round, 5), 1000);
