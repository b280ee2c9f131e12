import { randomUUID } from "node:crypto";

import { notApplied, resultError, TarryError } from "./error.js";
import { Stream } from "./stream.js";
import { now, sleep, waitEnd } from "./time.js";
import { Transport } from "./transport.js";
import * as gives from "./reply.js";
import { fromWire, path, query, toWire } from "./wire.js";

// The longest wait that is asked for in one request: the fetch of Node gives up after 300 s of silence.
const maxWait = 240;

// How many items a node takes in one request.
const maxBatch = 1000;

// A rest of a wait that is not worth another request, in ms.
const shortWait = 50;

// For how long a node may work on one sweep before it responds that there is more, in s.
const sweepTime = 20;

// For how long an operator's call may take that changes the cluster or compares its nodes, in s.
const operatorTime = 120;

/** A client of a cluster. The types and what the calls do: index.d.ts. */
export class Client {
  #transport;

  /**
   * @param {string | string[]} addresses
   * @param {import("tarry").ClientOptions} [options]
   */
  constructor(addresses, options = {}) {
    this.#transport = new Transport(addresses, options);
  }

  // Jobs

  async add(job, options) {
    return this.#call({ method: "POST", path: "/v1/jobs", body: wireAdd(job), gives: gives.added, repeat: true }, options);
  }

  async addBatch(jobs, options) {
    return this.#parts({ method: "POST", path: "/v1/jobs/batch", repeat: true }, jobs.map(wireAdd), gives.added, options);
  }

  async addAll(jobs, options) {
    const body = { atomic: true, jobs: jobs.map(wireAdd) };
    const request = { method: "POST", path: "/v1/jobs/batch", body, repeat: true };
    return whole(await this.#batch(request, jobs.length, gives.added, options));
  }

  async get(id, options) {
    return this.#call({ method: "GET", path: path`/v1/jobs/${id}`, gives: gives.job }, options);
  }

  async getBatch(ids, { body = true, ...options } = {}) {
    const results = [];
    do {
      const left = ids.slice(results.length, results.length + maxBatch);
      const request = { method: "POST", path: "/v1/get" + query({ body: body ? undefined : "false" }), body: { ids: left }, reads: true };
      const page = await this.#batch(request, left.length, gives.job, options);
      const full = page.findIndex((result, n) => n > 0 && result.code === "reply_full");
      results.push(...(full < 0 ? page : page.slice(0, full)));
    } while (results.length < ids.length);
    return results;
  }

  async history(id, options) {
    return this.#call({ method: "GET", path: path`/v1/jobs/${id}/history`, gives: { id: "", events: [{ event: "" }] } }, options);
  }

  async explain(id, options) {
    return this.#call({ method: "GET", path: path`/v1/jobs/${id}/explain`, gives: { id: "", text: "", causes: [{ cause: "" }] } }, options);
  }

  async update(id, changes, options) {
    return this.#call({ method: "PATCH", path: path`/v1/jobs/${id}`, body: toWire(changes), gives: gives.changed }, options);
  }

  async delete(ref, { ifRevision, ifState, ...options } = {}) {
    const { id, token } = refOf(ref);
    const condition = query({ token, ifRevision, ifState });
    await this.#end({ method: "DELETE", path: path`/v1/jobs/${id}` + condition, gives: gives.changed, repeat: true }, options);
  }

  list(filter, options) {
    return pages((cursor) => this.listPage(filter, cursor, options), "jobs");
  }

  async listPage({ topic, headers, ...filter }, cursor, options) {
    const base = topic === undefined ? "/v1/jobs" : path`/v1/topics/${topic}/jobs`;
    return this.#call({ method: "GET", path: base + query({ ...filter, cursor }, headers), gives: { jobs: [gives.job] } }, options);
  }

  async deleteJobs(found, options) {
    return this.#found("DELETE", "/v1/jobs", found, undefined, { deleted: 0 }, options);
  }

  async updateJobs(found, changes, options) {
    return this.#found("PATCH", "/v1/jobs", found, changes, { updated: 0 }, options);
  }

  async kickJobs(found, { toTopic, ...options } = {}) {
    return this.#found("POST", "/v1/jobs/kick", found, { toTopic }, { kicked: 0 }, options);
  }

  // Consuming

  async reserve(request, options) {
    return (await this.#reserve([], request, options)).jobs;
  }

  async finishAndReserve(refs, request, options) {
    if (refs.length === 0) {
      throw new TarryError("there is no job to finish", { code: "invalid_argument", field: "finish" });
    }
    return this.#reserve(refs.map(refOf), request, options);
  }

  /** Finishes jobs with the first request, if there are any. Once they are finished it does not fail. */
  async #reserve(refs, { topics, max, wait = 0, ttr, consumer }, { deadline, ...options } = {}) {
    toWire({ max, wait, ttr, deadline });
    const end = waitEnd(wait, deadline);
    const endOfAll = now() + (deadline ?? Infinity) * 1000;
    const left = () => Math.min(Math.max(Math.round(end - now()), 0) / 1000, maxWait);
    let finished = refs.length > 0 ? undefined : [];
    const body = () => ({ topics, max, wait: left(), ttr, consumer, finish: finished ? undefined : refs });
    for (;;) {
      const limits = { ...options, deadline: deadline && (endOfAll - now()) / 1000 };
      const results = finished ? {} : gives.batch(refs.length, gives.changed, "finished");
      const request = { method: "POST", path: "/v1/reserve", body, gives: { jobs: [gives.reserved], ...results }, wait: left, repeat: true };
      let answer;
      try {
        // A reservation that is lost on its way expires, so asking again does no harm.
        answer = await this.#transport.call(request, limits);
      } catch (error) {
        if (refs.length > 0 && finished) {
          return { jobs: [], finished }; // the next reserve meets it
        }
        throw error;
      }
      finished ??= failures(outcomes(answer.reply.finished, answer.mayBeDone));
      const jobs = fromWire(answer.reply.jobs);
      if (jobs.length > 0 || end - now() <= shortWait) {
        return { jobs, finished };
      }
      // The node ended the wait early: it stops, or the wait is longer than one request's.
      if (!(await sleep(shortWait, options.signal))) {
        if (refs.length > 0) {
          return { jobs, finished };
        }
        throw notApplied("the wait for a job was cancelled", options.signal.reason);
      }
    }
  }

  stream(stream, options) {
    return new Stream(this.#transport, stream, options);
  }

  async finish(ref, options) {
    const { id, token } = refOf(ref);
    const request = { method: "POST", path: path`/v1/jobs/${id}/finish`, body: { token }, gives: gives.changed, repeat: true };
    await this.#end(request, options);
  }

  async finishBatch(refs, options) {
    return failures(await this.#parts({ method: "POST", path: "/v1/finish", repeat: true }, refs.map(refOf), gives.changed, options));
  }

  async deleteBatch(refs, options) {
    return failures(await this.#parts({ method: "POST", path: "/v1/delete", repeat: true }, refs.map(refOf), gives.changed, options));
  }

  async kickBatch(ids, options) {
    return this.#parts({ method: "POST", path: "/v1/kick" }, ids.map((id) => ({ id })), gives.changed, options);
  }

  async updateBatch(updates, options) {
    return this.#parts({ method: "POST", path: "/v1/update" }, updates.map(toWire), gives.changed, options);
  }

  async finishThen(ref, then, options) {
    const { id, token } = refOf(ref);
    // Not sent again after an unknown outcome: not_found would not say whether the jobs were added.
    const request = { method: "POST", path: path`/v1/jobs/${id}/finish`, body: { token, then: then.map(wireAdd) } };
    return whole(await this.#batch(request, then.length, gives.added, options));
  }

  async touch(ref, { ttr, ...options } = {}) {
    return this.#step(ref, "touch", { ttr }, options, true);
  }

  async release(ref, { delay, priority, reason, ...options } = {}) {
    return this.#step(ref, "release", { delay, priority, reason }, options);
  }

  async bury(ref, { priority, reason, ...options } = {}) {
    return this.#step(ref, "bury", { priority, reason }, options);
  }

  async kick(id, { toTopic, ...options } = {}) {
    return this.#step(id, "kick", { toTopic }, options);
  }

  async move(ref, to, options) {
    return this.#step(ref, "move", { to }, options, true);
  }

  // Topics

  topics({ max, ...options } = {}) {
    return pages((after) => this.topicsPage({ after, max, ...options }), "topics");
  }

  async topicsPage({ after, max, ...options } = {}) {
    return this.#call({ method: "GET", path: "/v1/topics" + query({ after, max }), gives: { topics: [gives.topic] } }, options);
  }

  async topic(topic, options) {
    return this.#call({ method: "GET", path: path`/v1/topics/${topic}`, gives: gives.topic }, options);
  }

  async stats(options) {
    return this.#call({ method: "GET", path: "/v1/stats", gives: { topics: 0, ready: 0 } }, options);
  }

  async forecast(topic, { start, step, steps, ...options } = {}) {
    const base = topic === undefined ? "/v1/forecast" : path`/v1/topics/${topic}/forecast`;
    return this.#call({ method: "GET", path: base + query({ start, step, steps }), gives: gives.forecast }, options);
  }

  async forecastTopics({ start, step, max, ...options } = {}) {
    return this.#call({ method: "GET", path: "/v1/forecast/topics" + query({ start, step, max }), gives: gives.dueTopics }, options);
  }

  async rates(topic, options) {
    const of = topic === undefined ? "/v1/rates" : path`/v1/topics/${topic}/rates`;
    return this.#call({ method: "GET", path: of, gives: { step: 0, added: [0] } }, options);
  }

  async pause(topic, { for: duration, until, ...options } = {}) {
    const body = toWire({ for: duration, until });
    return this.#call({ method: "POST", path: path`/v1/topics/${topic}/pause`, body, gives: { paused: false }, repeat: true }, options);
  }

  async resume(topic, options) {
    return this.#call({ method: "POST", path: path`/v1/topics/${topic}/resume`, gives: { paused: false }, repeat: true }, options);
  }

  async kickTopic(topic, { max, filter, rate, toTopic, ...options } = {}) {
    return this.#sweep(topic, "kick", { max, all: max === undefined, filter, rate, toTopic }, { kicked: 0 }, options);
  }

  async releaseTopic(topic, { consumer, max, filter, reason, ...options } = {}) {
    return this.#sweep(topic, "release", { consumer, max, all: max === undefined, filter, reason }, { released: 0 }, options);
  }

  async purge(topic, state, { max, filter, ...options } = {}) {
    return this.#sweep(topic, "purge", { state, max, all: max === undefined, filter }, { deleted: 0 }, options);
  }

  async moveTopic(topic, to, { states, max, filter, cursor, ...options } = {}) {
    return this.#sweep(topic, "move", { to, states, max, all: max === undefined, filter, cursor }, { moved: 0 }, options);
  }

  async reschedule(topic, filter, { spread, earlier, postpone, max, cursor, ...options } = {}) {
    const body = toWire({ filter, spread, earlier, postpone, max, all: max === undefined, cursor });
    const request = { method: "POST", path: path`/v1/topics/${topic}/reschedule`, body, gives: { rescheduled: 0 }, repeat: true, work: sweepTime };
    return this.#call(request, options);
  }

  // Dead jobs

  async dead(topic, { max, ...options } = {}) {
    const base = topic === undefined ? "/v1/dead" : path`/v1/topics/${topic}/dead`;
    return this.#call({ method: "GET", path: base + query({ max }), gives: gives.deadReasons }, options);
  }

  async deadTopics(reason, { max, ...options } = {}) {
    return this.#call({ method: "GET", path: "/v1/dead/topics" + query({ exactReason: reason, max }), gives: gives.deadTopics }, options);
  }

  async kickDead(reason, { max, rate, toTopic, ...options } = {}) {
    const body = toWire({ exactReason: reason, max, all: max === undefined, rate, toTopic });
    return this.#call({ method: "POST", path: "/v1/dead/kick", body, gives: { kicked: 0 }, work: sweepTime }, options);
  }

  async purgeDead(reason, { max, ...options } = {}) {
    const body = toWire({ exactReason: reason, max, all: max === undefined });
    return this.#call({ method: "POST", path: "/v1/dead/purge", body, gives: { deleted: 0 }, work: sweepTime }, options);
  }

  // Settings

  async settings(topic, options) {
    return this.#call({ method: "GET", path: path`/v1/topics/${topic}/settings`, gives: gives.topicSettings }, options);
  }

  async setSettings(topic, settings, options) {
    return this.#settings("PUT", topic, settings, options);
  }

  async changeSettings(topic, settings, options) {
    return this.#settings("PATCH", topic, settings, options);
  }

  async deleteSettings(topic, options) {
    return this.#settings("DELETE", topic, undefined, options);
  }

  allSettings({ max, ...options } = {}) {
    return pages((after) => this.allSettingsPage({ after, max, ...options }), "topics");
  }

  async allSettingsPage({ after, max, ...options } = {}) {
    return this.#call({ method: "GET", path: "/v1/topic-settings" + query({ after, max }), gives: { topics: [gives.topicSettings] } }, options);
  }

  // Schedules

  async putSchedule(name, schedule, { ifRevision, ...options } = {}) {
    const body = toWire({ ...schedule, ifRevision });
    const repeat = ifRevision === undefined;
    return this.#call({ method: "PUT", path: path`/v1/schedules/${name}`, body, gives: gives.schedulePut, repeat }, options);
  }

  async schedule(name, options) {
    return this.#call({ method: "GET", path: path`/v1/schedules/${name}`, gives: gives.schedule }, options);
  }

  schedules({ max, ...options } = {}) {
    return pages((after) => this.schedulesPage({ after, max, ...options }), "schedules");
  }

  async schedulesPage({ after, max, ...options } = {}) {
    return this.#call({ method: "GET", path: "/v1/schedules" + query({ after, max }), gives: { schedules: [gives.schedule] } }, options);
  }

  async deleteSchedule(name, { ifRevision, ...options } = {}) {
    const repeat = ifRevision === undefined;
    const request = { method: "DELETE", path: path`/v1/schedules/${name}` + query({ ifRevision }), gives: gives.scheduleChanged, repeat };
    await this.#end(request, options);
  }

  async pauseSchedule(name, options) {
    await this.#call({ method: "POST", path: path`/v1/schedules/${name}/pause`, gives: gives.scheduleChanged, repeat: true }, options);
  }

  async resumeSchedule(name, options) {
    await this.#call({ method: "POST", path: path`/v1/schedules/${name}/resume`, gives: gives.scheduleChanged, repeat: true }, options);
  }

  async runSchedule(name, { key, ...options } = {}) {
    const repeat = key !== undefined;
    const request = { method: "POST", path: path`/v1/schedules/${name}/run`, body: { key }, gives: gives.added, repeat };
    return this.#call(request, options);
  }

  async scheduleRuns(name, options) {
    return (await this.#call({ method: "GET", path: path`/v1/schedules/${name}/runs`, gives: gives.runs }, options)).runs;
  }

  async previewSchedule(name, { count, ...options } = {}) {
    const request = { method: "GET", path: path`/v1/schedules/${name}/preview` + query({ count }), gives: gives.runs };
    return (await this.#call(request, options)).runs;
  }

  async previewSpec(spec, { signal, deadline, timeout, patience, ...times } = {}) {
    const request = { method: "POST", path: "/v1/schedules/preview", body: toWire({ spec, ...times }), gives: gives.runs, reads: true };
    return (await this.#call(request, { signal, deadline, timeout, patience })).runs;
  }

  // Tokens of the cluster

  async whoAmI(options) {
    return this.#call({ method: "GET", path: "/v1/whoami", gives: { mode: "", rules: [gives.rule] } }, options);
  }

  tokens({ max, ...options } = {}) {
    return pages((after) => this.tokensPage({ after, max, ...options }), "tokens");
  }

  async tokensPage({ after, max, ...options } = {}) {
    return this.#call({ method: "GET", path: "/v1/tokens" + query({ cursor: after, max }), gives: { tokens: [gives.token] } }, options);
  }

  async token(id, options) {
    return this.#call({ method: "GET", path: path`/v1/tokens/${id}`, gives: gives.token }, options);
  }

  async putToken(id, token, { ifRevision, ...options } = {}) {
    return this.#call({ method: "PUT", path: path`/v1/tokens/${id}` + query({ ifRevision }), body: toWire(token), gives: gives.tokenPut }, options);
  }

  async rotateToken(id, { overlap, ...options } = {}) {
    const request = { method: "POST", path: path`/v1/tokens/${id}/rotate`, body: toWire({ overlap }), gives: { ...gives.tokenPut, token: "" } };
    return this.#call(request, options);
  }

  async deleteToken(id, options) {
    await this.#end({ method: "DELETE", path: path`/v1/tokens/${id}`, repeat: true }, options);
  }

  // Namespaces

  async namespaces(options) {
    return (await this.#call({ method: "GET", path: "/v1/namespaces", gives: { namespaces: [gives.namespace] } }, options)).namespaces;
  }

  async namespace(name, options) {
    return this.#call({ method: "GET", path: path`/v1/namespaces/${name}`, gives: gives.namespace }, options);
  }

  async putNamespace(name, namespace, { ifRevision, ...options } = {}) {
    // One that was put already is no other, whatever its revision.
    const request = { method: "PUT", path: path`/v1/namespaces/${name}` + query({ ifRevision }), body: toWire(namespace), gives: gives.namespacePut, repeat: true };
    return this.#call(request, options);
  }

  async deleteNamespace(name, options) {
    await this.#end({ method: "DELETE", path: path`/v1/namespaces/${name}`, repeat: true }, options);
  }

  // The cluster

  async members(options) {
    return (await this.#call({ method: "GET", path: "/v1/cluster/members", gives: { members: [{ id: "" }] } }, options)).members;
  }

  async health(options) {
    return this.#call({ method: "GET", path: "/v1/cluster/health", gives: { healthy: false } }, options);
  }

  async clocks(options) {
    return this.#call({ method: "GET", path: "/v1/cluster/clock", gives: { max_offset: 0, clocks: [{ id: "" }] } }, options);
  }

  async verify(options) {
    const request = { method: "POST", path: "/v1/cluster/verify", gives: { equal: false, digests: [{ id: "" }] }, reads: true, work: operatorTime };
    return this.#call(request, options);
  }

  async transferLeadership(id, options) {
    const request = { method: "POST", path: "/v1/cluster/transfer-leadership", body: { id }, gives: { moved: false }, work: operatorTime };
    return (await this.#call(request, options)).moved;
  }

  async removeMember(id, options) {
    await this.#call({ method: "DELETE", path: path`/v1/cluster/members/${id}`, work: operatorTime }, options);
  }

  async join(addresses, options) {
    await this.#call({ method: "POST", path: "/v1/cluster/join", body: { addresses }, here: true, work: operatorTime }, options);
  }

  async leave(options) {
    await this.#call({ method: "POST", path: "/v1/cluster/leave", here: true, work: operatorTime }, options);
  }

  async resetClock(options) {
    await this.#call({ method: "POST", path: "/v1/cluster/clock/reset", work: operatorTime }, options);
  }

  // How the calls are made

  /** @returns {Promise<any>} */
  async #call(request, options) {
    return fromWire((await this.#transport.call(request, options)).reply);
  }

  /** A step of one job. */
  async #step(ref, verb, fields, options, repeat = false) {
    const { id, token } = refOf(ref);
    const body = toWire({ token, ...fields });
    return this.#call({ method: "POST", path: path`/v1/jobs/${id}/${verb}`, body, gives: gives.changed, repeat }, options);
  }

  /** Something is to be gone: that it is not there after an attempt of ours is what was wanted. */
  async #end(request, options) {
    try {
      await this.#transport.call(request, options);
    } catch (error) {
      if (!(error instanceof TarryError && isGone(error))) {
        throw error;
      }
    }
  }

  /** A request of n items; the result of each, or its error. */
  async #batch(request, n, shape, options) {
    const { reply, mayBeDone } = await this.#transport.call({ ...request, gives: gives.batch(n, shape) }, options);
    return outcomes(reply.results, mayBeDone);
  }

  /**
   * A batch in requests of as many items as a node takes; the result of each item, or its error. When a request
   * fails after the first, its items have its error, and the rest is not sent.
   */
  async #parts(request, items, shape, { deadline, ...options } = {}) {
    const end = now() + (deadline ?? Infinity) * 1000;
    const results = [];
    let failure;
    do {
      const first = results.length;
      const jobs = items.slice(first, first + maxBatch);
      if (failure) {
        const cause = failure;
        results.push(...jobs.map(() => notApplied(`it was not sent, because an earlier part of the batch failed: ${cause.message}`, cause)));
        continue;
      }
      try {
        const limits = { ...options, deadline: deadline && (end - now()) / 1000 };
        const part = await this.#batch({ ...request, body: { jobs } }, jobs.length, shape, limits);
        part.forEach((result) => result instanceof TarryError && nameItem(result, first));
        results.push(...part);
      } catch (error) {
        if (first === 0) {
          throw error;
        }
        failure = nameItem(error, first);
        results.push(...jobs.map(() => failure));
      }
    } while (results.length < items.length);
    return results;
  }

  async #sweep(topic, verb, fields, shape, options) {
    const body = toWire(fields);
    return this.#call({ method: "POST", path: path`/v1/topics/${topic}/${verb}`, body, gives: shape, work: sweepTime }, options);
  }

  /** Does something to the jobs that a filter finds. */
  async #found(method, path, { headers, ...filter }, fields, shape, options) {
    const found = query({ ...filter, all: filter.max === undefined }, headers);
    return this.#call({ method, path: path + found, body: fields && toWire(fields), gives: shape, work: sweepTime }, options);
  }

  async #settings(method, topic, settings, { ifRevision, ...options } = {}) {
    const body = settings && toWire(settings);
    const repeat = ifRevision === undefined; // without a condition, once more changes nothing
    return this.#call({ method, path: path`/v1/topics/${topic}/settings` + query({ ifRevision }), body, gives: gives.topicSettings, repeat }, options);
  }
}

/** An add as the server reads it. It gets its id here, once: so all attempts are one job. */
function wireAdd(job) {
  return toWire({ ...job, id: job.id ?? randomUUID() });
}

function refOf(ref) {
  return typeof ref === "object" ? { id: ref.id, token: ref.token } : { id: ref };
}

/** What became of the items of a batch: the result of each, or its error. */
function outcomes(results, mayBeDone) {
  return results.map((result) => {
    if (result.success) {
      return fromWire(result);
    }
    const error = resultError(result);
    if (mayBeDone) {
      error.outcome = "unknown";
    }
    return error;
  });
}

/** Makes the error in a part of a batch name the item of the batch; first is that of the part. */
function nameItem(error, first) {
  const named = (text) => text?.replace(/^jobs\[(\d+)\]/, (_, n) => `jobs[${first + Number(n)}]`);
  error.field = named(error.field);
  error.message = named(error.message);
  return error;
}

/** The error of each finish; null: the job is finished, perhaps by an earlier attempt. */
function failures(results) {
  return results.map((result) => (result instanceof TarryError && !isGone(result) ? result : null));
}

/** Reports whether something is not there after an attempt that may have removed it. */
function isGone(error) {
  return error.code === "not_found" && error.outcome === "unknown";
}

/** The results of a batch that is done as a whole. */
function whole(results) {
  const error = results.find((result) => result instanceof TarryError);
  if (error) {
    throw error;
  }
  return results;
}

async function* pages(page, member) {
  let next;
  let incomplete = false;
  do {
    const reply = await page(next);
    yield* reply[member];
    incomplete ||= reply.incomplete === true;
    next = reply.next;
  } while (next);
  if (incomplete) {
    throw new TarryError("jobs may be missing: the index of a header is being built", { code: "incomplete" });
  }
}
