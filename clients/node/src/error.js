/** A call that failed. `outcome` says whether it may have been done all the same. */
export class TarryError extends Error {
  name = "TarryError";

  /**
   * @param {string} message
   * @param {{code: string, outcome?: "not_applied" | "unknown", status?: number, field?: string, retryAfter?: number, cause?: unknown}} details
   */
  constructor(message, { code, outcome = "not_applied", status, field, retryAfter, cause }) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.outcome = outcome;
    this.status = status;
    this.field = field;
    this.retryAfter = retryAfter;
  }
}

/** @param {string} message @param {unknown} [cause] */
export const notApplied = (message, cause) => new TarryError(message, { code: "not_applied", cause });

/** @param {string} message @param {unknown} [cause] */
export const unknown = (message, cause) => new TarryError(message, { code: "unknown", outcome: "unknown", cause });

/**
 * Reports whether certainly nothing was done and another attempt may succeed. A full
 * topic (topic_full) is not meant: only its consumers can change that.
 *
 * @param {TarryError} error
 */
export const refused = (error) =>
  error.code === "not_applied" || error.code === "overloaded" || error.code === "disk_low";

/**
 * The error in a node's response.
 *
 * @param {string} node
 * @param {Response} response
 * @param {string} text
 */
export function responseError(node, response, text) {
  let reply;
  try {
    reply = JSON.parse(text);
  } catch {
    reply = undefined;
  }
  if (typeof reply?.code !== "string") {
    const error = unknown(`the response of ${node} is not Tarry's: status ${response.status}`);
    error.status = response.status;
    return error;
  }
  const seconds = Number(response.headers.get("retry-after"));
  return resultError(reply, response.status, seconds > 0 ? seconds : undefined);
}

/**
 * The error in a response or in one result of a batch.
 *
 * @param {{code: string, error?: string, field?: string, outcome?: string}} reply
 * @param {number} [status]
 * @param {number} [retryAfter]
 */
export function resultError(reply, status, retryAfter) {
  return new TarryError(reply.error ?? reply.code, {
    code: reply.code,
    outcome: reply.outcome === "unknown" || reply.code === "internal" ? "unknown" : "not_applied",
    field: reply.field,
    status,
    retryAfter,
  });
}

// What fails before anything of a request is sent.
const notConnected = /^(ECONNREFUSED|ENOTFOUND|EAI_|UND_ERR_CONNECT_TIMEOUT|CERT_|ERR_TLS_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/;

/**
 * Reports whether a failure of fetch shows that the node was not connected to. The codes
 * are those of Node; other failures may have happened after the request was sent.
 *
 * @param {any} failure
 * @returns {boolean}
 */
function neverSent(failure) {
  const cause = failure?.cause ?? failure;
  if (Array.isArray(cause?.errors) && cause.errors.length > 0) {
    return cause.errors.every(neverSent); // one for each address of a name
  }
  return cause?.syscall === "connect" || notConnected.test(cause?.code ?? "") || cause?.message === "bad port";
}

/**
 * The error of an attempt that got no response.
 *
 * @param {string} node
 * @param {any} failure what fetch threw
 */
export function connectionError(node, failure) {
  const reason = failure?.cause?.code ?? failure?.cause?.message ?? failure?.message;
  if (neverSent(failure)) {
    return notApplied(`${node} cannot be reached: ${reason}`, failure);
  }
  return unknown(`the connection to ${node} was lost before it responded: ${reason}`, failure);
}
