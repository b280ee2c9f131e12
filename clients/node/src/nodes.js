import { now } from "./time.js";

// For how long, in ms, a node that did not respond is not taken for the leader; by then
// another one leads.
const avoidFailed = 2_000;

// For how long, in ms, an address that was learned and cannot be reached is not learned again:
// it may mean something only within a network that the client is not in. Each time it is twice as long.
const avoidUnreachable = 60_000;
const maxAvoid = 3_600_000;

// More members than any cluster has.
const maxLearned = 100;

/** The nodes that a client knows, and the one that it asks first. */
export class Nodes {
  /** @type {string[]} */
  #given;
  /** @type {Set<string>} */
  #learned = new Set();
  /** @type {Map<string, { until: number, pause: number }>} */
  #avoided = new Map();
  /** @type {string} */
  #first;
  #discover;
  #usable;

  /**
   * @param {string | string[]} addresses host:port, or URLs; a text may have several, separated by commas
   * @param {boolean} discover whether addresses are learned
   * @param {(node: string) => boolean} usable whether calls may go to a base URL
   */
  constructor(addresses, discover, usable = () => true) {
    const texts = typeof addresses === "string" ? [addresses] : addresses;
    if (!Array.isArray(texts) || texts.length === 0) {
      throw new TypeError("no address of a node is given");
    }
    this.#given = [...new Set(texts.join(",").split(",").map((address) => baseURL(address.trim())))];
    const refused = this.#given.find((node) => !usable(node));
    if (refused !== undefined) {
      throw new TypeError(
        `address ${JSON.stringify(refused)}: a token is not sent to another machine without TLS; use https:// (docs/tls.md), or tokenOverHttp if the network can be trusted`,
      );
    }
    this.#usable = usable;
    this.#first = this.#given[Math.floor(Math.random() * this.#given.length)];
    this.#discover = discover;
  }

  /** @returns {string[]} all that are known, the first one first */
  all() {
    const all = [...this.#given, ...this.#learned];
    const at = Math.max(all.indexOf(this.#first), 0);
    return [...all.slice(at), ...all.slice(0, at)];
  }

  /**
   * The node to ask after those that were tried; undefined when all were.
   *
   * @param {Set<string>} tried
   * @param {boolean} [here] only those that were given
   */
  next(tried, here = false) {
    return this.all().find((node) => !tried.has(node) && (!here || this.#given.includes(node)));
  }

  /**
   * A node has responded, and said who leads.
   *
   * @param {string} node
   * @param {string | null} leader host:port; null when it does not know
   */
  responded(node, leader) {
    this.#avoided.delete(node);
    const url = leader && this.#learn(leader, node);
    this.#first = url || node;
  }

  /**
   * A node has told of another one.
   *
   * @param {string[]} addresses
   * @param {string} from the node that told
   */
  learn(addresses, from) {
    for (const address of addresses) {
      this.#learn(address, from);
    }
  }

  /**
   * @param {string} address
   * @param {string} from
   * @returns {string | undefined} the URL, when that node can be used
   */
  #learn(address, from) {
    const url = from.slice(0, from.indexOf("://") + 3) + address;
    if ((this.#avoided.get(url)?.until ?? 0) > now()) {
      return undefined;
    }
    if (this.#given.includes(url) || this.#learned.has(url)) {
      return url;
    }
    if (!this.#discover || !isBaseURL(url) || !this.#usable(url) || this.#learned.size >= maxLearned) {
      return undefined;
    }
    this.#learned.add(url);
    return url;
  }

  /**
   * A node did not respond: others are asked first from now on.
   *
   * @param {string} node
   * @param {boolean} unreachable nothing listens there, or the name means nothing here
   */
  failed(node, unreachable) {
    if (node === this.#first) {
      this.#first = this.all()[1] ?? node;
    }
    const forgotten = unreachable && this.#learned.delete(node);
    const last = this.#avoided.get(node)?.pause ?? 0;
    if (this.#avoided.size >= 2 * maxLearned) {
      this.#avoided.clear();
    }
    const pause = forgotten ? Math.min(Math.max(avoidUnreachable, 2 * last), maxAvoid) : avoidFailed;
    this.#avoided.set(node, { until: now() + pause, pause });
  }
}

/** @param {string} url */
const isBaseURL = (url) => /^https?:\/\/([^\s/?#@:[\]]+|\[[^\s/?#@\]]+\]):\d+$/.test(url);

/** @param {string} address */
function baseURL(address) {
  const url = (/^https?:\/\//.test(address) ? address : "http://" + address).replace(/\/$/, "");
  if (!isBaseURL(url)) {
    throw new TypeError(`address ${JSON.stringify(address)} is not of the form host:port`);
  }
  return url;
}
