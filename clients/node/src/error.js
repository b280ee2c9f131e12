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
  error.code === "not_applied" || error.code === "overloaded" || error.code === "rate_limited" || error.code === "disk_low";

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

/** A failure before a connection was made, so that nothing was sent. */
export class Unsent extends Error {
  /** @param {any} cause */
  constructor(cause) {
    super(String(cause?.message ?? cause), { cause });
  }
}

// Codes of what fails before anything of a request is sent.
const notConnected = /^(ECONNREFUSED|ENOTFOUND|EAI_|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_)/;
const badCertificate = /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/;

/**
 * Reports whether all that a failure has for its cause is as test says: there is one failure for each address of a name.
 *
 * @param {any} failure
 * @param {(failure: any) => boolean} test
 * @returns {boolean}
 */
function all(failure, test) {
  const cause = failure?.cause ?? failure;
  if (Array.isArray(cause?.errors) && cause.errors.length > 0) {
    return cause.errors.every((/** @type {any} */ one) => all(one, test));
  }
  return test(cause);
}

/**
 * Reports whether a failure shows that the node was not connected to. The codes are those of
 * Node; other failures may have happened after the request was sent.
 *
 * @param {any} failure
 */
const neverSent = (failure) =>
  failure instanceof Unsent ||
  all(failure, ({ syscall, code, message } = {}) => syscall === "connect" || notConnected.test(code) || badCertificate.test(code) || message === "bad port");

/**
 * Reports whether an error is that a certificate is not accepted: another attempt at the same node fails too.
 *
 * @param {TarryError} error
 */
export const isCertificate = (error) => all(error.cause, (cause) => badCertificate.test(cause?.code ?? ""));

/**
 * The error of an attempt that got no response.
 *
 * @param {string} node
 * @param {any} failure what the request threw
 */
export function connectionError(node, failure) {
  const cause = failure?.cause?.cause ?? failure?.cause ?? failure;
  const reason = cause?.code ?? cause?.message;
  if (!neverSent(failure)) {
    return unknown(`the connection to ${node} was lost before it responded: ${reason}`, failure);
  }
  const error = notApplied(`${node} cannot be reached: ${reason}`, failure);
  if (isCertificate(error)) {
    error.message = `the certificate of ${node} is not accepted: ${cause.message}`;
  }
  return error;
}
