import { connectionError, isCertificate, notApplied, refused, responseError, TarryError, unknown, Unsent } from "./error.js";
import { fetcher, sender } from "./http.js";
import { Nodes } from "./nodes.js";
import { unlike } from "./reply.js";
import { Token } from "./token.js";
import { backoff, Deadline, now, sleep, whyEnded } from "./time.js";

// After how long, in ms, the cluster is asked for its members again, when that failed.
const askAgain = 10_000;

/**
 * One call before it is sent.
 *
 * @typedef {object} Request
 * @property {"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} method
 * @property {string} path escaped
 * @property {(() => unknown) | object} [body] what is sent as JSON; a function is asked before each attempt
 * @property {() => number} [wait] for how many seconds the server was asked to wait
 * @property {number} [work] how many seconds it may take because there is much to do
 * @property {import("./reply.js").Shape} [gives] what a response has at least
 * @property {boolean} [repeat] sending it twice does no harm, as with every GET, so an unknown
 *   outcome may be followed by another attempt
 * @property {boolean} [here] it is for a node that was given to the client, not for any node of the cluster
 * @property {boolean} [reads] it changes nothing although it is no GET
 */

/** @typedef {import("tarry").CallOptions} CallOptions */

/** Sends requests to a cluster: which node is asked, what is sent again, and when. */
export class Transport {
  /** When the cluster may be asked for its members: Infinity while and after it was. */
  #askMembers;
  #send;
  #token;
  #onRetry;

  /**
   * @param {string | string[]} addresses
   * @param {import("tarry").ClientOptions} options
   */
  constructor(addresses, { timeout = 10, patience = 30, discover = true, fetch, tls, onRetry = () => {}, ...token }) {
    if (fetch && tls) {
      throw new TypeError("give tls or fetch: a fetch of your own makes its connections itself");
    }
    this.#token = new Token(token);
    this.nodes = new Nodes(addresses, discover, (node) => this.#token.usable(node));
    this.timeout = timeout;
    this.patience = patience;
    this.#askMembers = discover ? 0 : Infinity;
    this.#send = fetch ? fetcher(fetch) : sender(tls);
    this.#onRetry = onRetry;
  }

  /**
   * Sends a request and gives its response.
   *
   * @param {Request} request
   * @param {CallOptions} [options]
   * @returns {Promise<{reply: any, mayBeDone: boolean}>} mayBeDone: an earlier attempt may
   *   have been done
   */
  async call(request, options) {
    const { value, mayBeDone } = await this.retry(request, options, (node, limit, signal) =>
      this.#attempt(node, request, limit, signal),
    );
    return { reply: value, mayBeDone };
  }

  /**
   * Attempts a request until it succeeds: at the next node when one does not respond or could
   * not do it, after a pause when that is true of all.
   *
   * @template T
   * @param {Request} request
   * @param {CallOptions | undefined} options
   * @param {(node: string, limit: number, signal?: AbortSignal) => Promise<T>} attempt
   */
  async retry(request, { signal, deadline, ...times } = {}, attempt) {
    if (deadline === undefined) {
      return this.#retry(request, { signal, ...times }, attempt);
    }
    const limited = new Deadline(signal);
    try {
      limited.end(deadline);
      return await this.#retry(request, { signal: limited.signal, ...times }, attempt);
    } finally {
      limited.close();
    }
  }

  /**
   * @template T
   * @param {Request} request
   * @param {CallOptions} options
   * @param {(node: string, limit: number, signal?: AbortSignal) => Promise<T>} attempt
   */
  async #retry(request, { signal, timeout = this.timeout, patience = this.patience }, attempt) {
    if (signal?.aborted) {
      throw notApplied(`${whyEnded(signal)} before it was sent`, signal.reason);
    }
    const end = now() + (patience + (request.wait?.() ?? 0)) * 1000;
    const read = request.method === "GET" || Boolean(request.reads);
    const repeat = read || Boolean(request.repeat);
    const tried = new Set();
    let attempts = 0;
    let mayBeDone = false;
    let told = false;
    let lasting = true; // so far all failures of this round were of certificates
    /** @type {TarryError | undefined} */
    let heard; // the last failure with a response: it says more than that another node gave none
    for (let round = 0; ; ) {
      const node = /** @type {string} */ (this.nodes.next(tried, request.here));
      tried.add(node);
      let failure;
      try {
        const limit = timeout + (request.wait?.() ?? 0) + (request.work ?? 0);
        return { value: await attempt(node, limit, signal), mayBeDone };
      } catch (error) {
        if (!(error instanceof TarryError)) {
          throw error;
        }
        failure = error;
      }
      attempts++;
      const again = refused(failure) || (failure.outcome === "unknown" && repeat);
      if (read && failure.outcome === "unknown") {
        failure.code = failure.code === "unknown" ? "not_applied" : failure.code;
        failure.outcome = "not_applied"; // a read changes nothing
      }
      mayBeDone ||= failure.outcome === "unknown";
      heard = failure.status === undefined ? heard : failure;
      const telling = again && failure.status === undefined ? heard ?? failure : failure;
      const error = lastError(telling, mayBeDone, attempts);
      const roundOver = this.nodes.next(tried, request.here) === undefined;
      const left = end - now();
      lasting &&= isCertificate(failure);
      if (again && signal?.aborted) {
        throw endedBy(signal, error);
      }
      if (!again || (roundOver && (left <= 0 || lasting))) {
        throw error;
      }
      if (!told && left > 0 && (heard || roundOver)) {
        told = true;
        this.#onRetry(error, left / 1000);
      }
      if (roundOver) {
        const pause = Math.max((failure.retryAfter ?? 0) * 1000, backoff(round++));
        if (!(await sleep(Math.min(pause, left), signal))) {
          throw endedBy(/** @type {AbortSignal} */ (signal), error);
        }
        tried.clear();
        lasting = true;
      }
    }
  }

  /**
   * Sends a request to one node.
   *
   * @param {string} node
   * @param {Request} request
   * @param {number} limit seconds
   * @param {AbortSignal} [signal]
   */
  async #attempt(node, request, limit, signal) {
    const deadline = new Deadline(signal);
    try {
      deadline.set(limit, `no response in ${limit} s`);
      const body = typeof request.body === "function" ? request.body() : request.body;
      const response = await this.open(node, request, body, deadline.signal, signal);
      const text = await this.#text(node, response, deadline.signal, signal);
      return parse(node, response, text, request.gives);
    } finally {
      deadline.close();
    }
  }

  /**
   * Sends a request to one node and gives its response, of which the body is not read yet.
   *
   * @param {string} node
   * @param {Request} request
   * @param {unknown} body
   * @param {AbortSignal} signal
   * @param {AbortSignal} [caller] the caller's own: what it ends is not the node's failure
   */
  async open(node, { method, path }, body, signal, caller) {
    const json = body === undefined ? undefined : JSON.stringify(body);
    /** @type {Response} */
    let response;
    try {
      const headers = this.#token.headers();
      if (json !== undefined) {
        headers["Content-Type"] = "application/json";
      }
      response = await this.#send(node, path, { method, body: json, headers, signal });
    } catch (cause) {
      if (cause instanceof TarryError) {
        throw cause;
      }
      const ended = cause instanceof Unsent ? new Unsent(signal.reason) : signal.reason;
      throw this.lost(node, signal.aborted ? ended : cause, caller);
    }
    this.nodes.responded(node, response.headers.get("tarry-leader"));
    this.#learnMembers(node);
    if (!response.ok) {
      throw responseError(node, response, await this.#text(node, response, signal, caller));
    }
    return response;
  }

  /**
   * @param {string} node
   * @param {Response} response
   * @param {AbortSignal} signal
   * @param {AbortSignal} [caller]
   */
  async #text(node, response, signal, caller) {
    try {
      return await response.text();
    } catch (cause) {
      throw this.lost(node, signal.aborted ? signal.reason : cause, caller);
    }
  }

  /**
   * Notes that the connection to a node failed.
   *
   * @param {string} node
   * @param {unknown} cause
   * @param {AbortSignal} [caller]
   */
  lost(node, cause, caller) {
    if (caller?.aborted) {
      const outcome = cause instanceof Unsent ? notApplied : unknown;
      return outcome(`${whyEnded(caller)} before ${node} responded`, caller.reason);
    }
    const error = connectionError(node, cause);
    this.nodes.failed(node, error.code === "not_applied");
    return error;
  }

  /**
   * Asks once who the members of the cluster are, while calls go on. A failure is
   * ignored: a later call asks again.
   *
   * @param {string} node
   */
  async #learnMembers(node) {
    if (now() < this.#askMembers) {
      return;
    }
    this.#askMembers = Infinity;
    try {
      const reply = await this.#attempt(node, { method: "GET", path: "/v1/cluster/members", gives: { members: [{}] } }, this.timeout);
      this.nodes.learn(reply.members.map((/** @type {any} */ m) => m.http_address).filter(Boolean), node);
    } catch {
      this.#askMembers = now() + askAgain;
    }
  }
}

/**
 * The error of a call that a signal ended, after an attempt that failed.
 *
 * @param {AbortSignal} signal
 * @param {TarryError} error
 */
function endedBy(signal, error) {
  const why = whyEnded(signal);
  if (!error.message.includes(why)) {
    error.message = `${why}: ${error.message}`;
  }
  return error;
}

/**
 * @param {string} node
 * @param {Response} response
 * @param {string} text
 * @param {import("./reply.js").Shape} [gives]
 */
function parse(node, response, text, gives) {
  let reply;
  let wrong;
  try {
    reply = JSON.parse(text);
    // A batch of which an item failed has success false too.
    const done = reply?.success || reply?.results || reply?.finished;
    wrong = unlike({ ...gives, success: false }, reply) ?? (done ? undefined : "success is false");
  } catch {
    wrong = "it is not JSON";
  }
  if (wrong) {
    const error = unknown(`the response of ${node} is not understood, no node of Tarry sent it or one of another release: ${wrong}`);
    error.status = response.status;
    throw error;
  }
  return reply;
}

/**
 * The error of a call whose last attempt failed: it must not promise that nothing was done
 * when an earlier attempt may have been.
 *
 * @param {TarryError} last
 * @param {boolean} mayBeDone
 * @param {number} attempts
 */
export function lastError(last, mayBeDone, attempts) {
  if (mayBeDone && refused(last)) {
    return unknown(`an earlier attempt may have been done; the last one failed: ${last.message}`, last);
  }
  if (mayBeDone) {
    last.outcome = "unknown";
  }
  if (last.status === undefined && attempts > 1) {
    last.message = `after ${attempts} attempts: ${last.message}`;
  }
  return last;
}
