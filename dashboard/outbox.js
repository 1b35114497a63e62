/**
 * The messages that this page sends to an agent, until the conversation has them. It does not use the document.
 *
 *  O1 A message keeps its id over all attempts, so that the service takes it once.
 *  O2 A message leaves when the conversation has its id, when the service takes it, or when its text goes back to the
 *     composer. Until then the tab's storage has it, too.
 *  O3 The service's refusal is final. Only an answer that is missing, or a failure of the service, is tried again.
 *  O4 Messages that queue are sent one after the other, so that none overtakes an earlier one. A message that interrupts
 *     does not wait for them.
 */
import { ApiError, post } from "./api.js";
import { now } from "./format.js";
import { keep, readKept } from "./kept.js";
import { noteWritten } from "./written.js";

/** @typedef {import("./wire.d.ts").Item} Item */
/** @typedef {import("./attachments.js").Attachment} Attachment */
/** @typedef {{text: string, attachments?: readonly Attachment[], delivery: "queue" | "interrupt", model?: string, agent?: string, restore?: boolean}} Message restore: whether a restart brings saved work back */

/**
 * @typedef {object} Sent
 * @property {string} id
 * @property {Message} message
 * @property {string} at
 * @property {string | null} problem why no further attempt is made; null while there is one
 */

/**
 * @typedef {object} Listener
 * @property {() => void} changed
 * @property {(item: Item) => void} taken
 * @property {(message: Message, error: ApiError) => void} refused
 */

/** The pauses before further attempts. */
const RETRY_MS = [500, 2000, 5000];
/** Refusals that are about the moment, and not about the message. */
const PASSING = new Set([401, 408]);

/** @typedef {ReturnType<typeof makeOutbox>} Outbox */

/**
 * @typedef {object} Box
 * @property {string} path of the session in the API
 * @property {Sent[]} sent oldest first
 * @property {Sent | null} current the one that queues and is being sent
 * @property {Set<ReturnType<typeof setTimeout>>} timers of further attempts
 * @property {Listener} listener
 */

/** @param {string} path of the session in the API @param {Listener} listener */
export const makeOutbox = (path, listener) => {
  /** @type {Box} */
  const box = { path, sent: readKept(storedAs(path)) ?? [], current: null, timers: new Set(), listener };
  for (const one of box.sent) one.problem ??= "The page was left before the service answered.";
  /** @param {string} id */
  const unsent = (id) => box.sent.find((one) => one.id === id && one.problem !== null);
  return {
    /** Messages that the conversation does not have yet, oldest first. */
    sent: /** @type {readonly Sent[]} */ (box.sent),

    /** @param {Message} message */
    send: (message) => {
      const one = { id: makeId(), message, at: new Date(now()).toISOString(), problem: null };
      box.sent.push(one);
      store(path, (all) => [...all, one]);
      begin(box, one);
      listener.changed();
    },

    /** Sends it once more, under the same id. @param {string} id */
    again: (id) => {
      const one = unsent(id);
      if (one === undefined) return;
      one.problem = null;
      begin(box, one);
      listener.changed();
    },

    /** Gives up a message that could not be sent. @param {string} id @returns {Message | null} */
    takeBack: (id) => {
      const one = unsent(id);
      if (one === undefined) return null;
      drop(box, one);
      listener.changed();
      return one.message;
    },

    /** Forgets what the conversation has by now. @param {(id: string) => boolean} has */
    settle: (has) => {
      for (const one of box.sent.filter(({ id }) => has(id))) drop(box, one);
    },

    end: () => {
      for (const timer of box.timers) clearTimeout(timer);
    },
  };
};

/**
 * Keeps a message that another page could not send. The session's page shows it with the problem, and the reader sends it
 * again or takes it back.
 *
 * @param {string} path of the session in the API @param {Message} message @param {string} problem
 */
export const keepUnsent = (path, message, problem) =>
  store(path, (all) => [...all, { id: makeId(), message, at: new Date(now()).toISOString(), problem }]);

/** @param {string} path */
const storedAs = (path) => `unsent ${path}`;

/**
 * The storage may have messages of a later visit to the same session, too.
 *
 * @param {string} path
 * @param {(all: Sent[]) => Sent[]} change
 */
const store = (path, change) => {
  const all = change(readKept(storedAs(path)) ?? []);
  keep(storedAs(path), all.length === 0 ? null : all);
};

/** @param {Box} box @param {Sent} one */
const drop = (box, one) => {
  const index = box.sent.indexOf(one);
  if (index >= 0) box.sent.splice(index, 1);
  store(box.path, (all) => all.filter(({ id }) => id !== one.id));
  pass(box, one);
};

/** @param {Message} message as the service takes it */
export const payloadOf = ({ text, attachments = [], restore = false, ...others }) => ({
  ...(text !== "" && { text }),
  ...others,
  ...(restore && { restore_saved: true }),
  ...(attachments.length > 0 && { attachments: attachments.map(({ id }) => id) }),
});

/** @param {Box} box @param {Sent} one */
const begin = (box, one) => {
  if (one.message.delivery === "interrupt") void deliver(box, one);
  else void sendNext(box);
};

/** @param {Box} box */
const sendNext = async (box) => {
  const one = box.sent.find(({ message, problem }) => message.delivery === "queue" && problem === null);
  if (box.current !== null || one === undefined) return;
  box.current = one;
  await deliver(box, one);
  pass(box, one);
};

/** Its turn is over. @param {Box} box @param {Sent} one */
const pass = (box, one) => {
  if (box.current !== one) return;
  box.current = null;
  void sendNext(box);
};

/** Tries until the message has left or its problem is known. @param {Box} box @param {Sent} one */
const deliver = async (box, one) => {
  for (const pause of [...RETRY_MS, null]) {
    // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
    if ((await attempt(box, one, pause === null)) !== "again" || pause === null) return;
    // oxlint-disable-next-line no-await-in-loop -- the same
    await rest(box, pause);
    if (!box.sent.includes(one)) return;
  }
};

/** @param {Box} box @param {Sent} one @param {boolean} isLast @returns {Promise<"again" | "ended">} */
const attempt = async (box, one, isLast) => {
  const { path, listener } = box;
  try {
    const { message } = await post(`${path}/messages`, { id: one.id, ...payloadOf(one.message) });
    noteWritten(path);
    drop(box, one);
    listener.taken(message);
    return "ended";
  } catch (error) {
    return box.sent.includes(one) ? failed(box, one, { isLast, error }) : "ended";
  } finally {
    listener.changed();
  }
};

/** @param {Box} box @param {Sent} one @param {{isLast: boolean, error: unknown}} failure @returns {"again" | "ended"} */
const failed = (box, one, { isLast, error }) => {
  const status = error instanceof ApiError ? error.status : 0;
  if (error instanceof ApiError && status >= 400 && status < 500 && !PASSING.has(status)) {
    drop(box, one);
    box.listener.refused(one.message, error);
    return "ended";
  }
  if (!isLast && status !== 401) return "again";
  one.problem = error instanceof Error ? error.message : String(error);
  return "ended";
};

/** @param {Box} box @param {number} ms @returns {Promise<void>} never resolves when the page is left meanwhile */
const rest = ({ timers }, ms) =>
  new Promise((resolve) => {
    // eslint-disable-next-line no-restricted-globals -- the browser's timer
    const timer = setTimeout(() => {
      timers.delete(timer);
      resolve();
    }, ms);
    timers.add(timer);
  });

/** A random UUID. The browser's own function is missing where the page does not come over TLS. @returns {string} */
export const makeId = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
};
