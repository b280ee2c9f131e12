// What the responses of the calls have at least. A response without it is of something else than
// the call, whatever its status: then nothing is known of the call.
//
// A shape is an example: "", 0 and false stand for values of their type, [shape] for a list of
// such elements, a function says itself what is wrong with a value.

/** @typedef {any} Shape */

/**
 * Says where a value is not of a shape; undefined: nowhere.
 *
 * @param {Shape} shape
 * @param {any} value
 * @param {string} [name]
 * @returns {string | undefined}
 */
export function unlike(shape, value, name = "it") {
  if (typeof shape === "function") {
    return shape(value, name);
  }
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) {
      return `${name} is not a list`;
    }
    return shape.length === 0 ? undefined : first(value, (element, n) => unlike(shape[0], element, `${name}[${n}]`));
  }
  if (typeof shape !== "object") {
    return typeof value === typeof shape ? undefined : `${name} is not a ${typeof shape}`;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return `${name} is not an object`;
  }
  return first(Object.entries(shape), ([member, of]) => unlike(of, value[member], name === "it" ? member : `${name}.${member}`));
}

/**
 * @template T
 * @param {T[]} list
 * @param {(element: T, n: number) => string | undefined} wrong
 */
function first(list, wrong) {
  for (const [n, element] of list.entries()) {
    const what = wrong(element, n);
    if (what) {
      return what;
    }
  }
  return undefined;
}

/**
 * The results of a batch of n items: each is of the shape, or an error.
 *
 * @param {number} n
 * @param {Shape} shape
 * @param {string} [member] in which they are
 */
export const batch = (n, shape, member = "results") => ({
  [member]: (/** @type {any} */ value, /** @type {string} */ name) =>
    unlike([(/** @type {any} */ item, /** @type {string} */ of) => unlike(item?.success === true ? shape : { code: "" }, item, of)], value, name) ??
    (value.length === n ? undefined : `${name} has ${value.length} elements for ${n}`),
});

export const added = { id: "", seq: 0, state: "" };
export const changed = { id: "", state: "" };
export const job = { id: "", topic: "", state: "" };
export const reserved = { id: "", token: "" };
export const topic = { topic: "", ready: 0, paused: false };
export const topicSettings = { revision: 0, settings: {} };
export const schedule = { schedule: "", spec: "" };
export const schedulePut = { schedule: "", revision: 0 };
export const rule = { topics: [""], verbs: [""] };
export const token = { id: "", revision: 0, rules: [rule] };
export const tokenPut = { id: "", revision: 0 };
export const namespace = { name: "", revision: 0, topic_prefix: "", quotas: {}, use: { jobs: 0, bytes: 0, topics: 0 } };
export const namespacePut = { name: "", revision: 0, existing: false };
export const scheduleChanged = { schedule: "" };
export const runs = { runs: [{}] };
export const forecast = { start: "", step: 0, jobs: [0] };
export const dueTopics = { start: "", jobs: 0, topics: [{ topic: "", jobs: 0 }] };
export const deadReasons = { jobs: 0, groups: [{ reason: "", jobs: 0 }] };
export const deadTopics = { jobs: 0, groups: [{ topic: "", jobs: 0 }] };
