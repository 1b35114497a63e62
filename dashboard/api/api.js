/** The page's calls to the service: with the cookie of the dashboard's session, and a CSRF token on every change. */

/** Long enough for a merge of a large repository. */
const TIMEOUT_MS = 30_000;

/** A refusal by the service, in its own words (api.md 1 "Errors"). */
export class ApiError extends Error {
  /** @param {number} status 0: no answer at all @param {{code: string, error: string, details?: any}} refusal */
  constructor(status, { code, error, details }) {
    super(error);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

let csrf = "";

/** A file may be large, and the reader's line slow. The service waits as long. */
const UPLOAD_TIMEOUT_MS = 120_000;

/**
 * @param {string} method
 * @param {string} path with its query
 * @param {{body?: unknown, timeoutMs?: number}} [content] body: a file is sent as it is, anything else as JSON
 */
export const call = async (method, path, { body, timeoutMs } = {}) => {
  const file = body instanceof Blob ? body : null;
  /** @type {Record<string, string>} */
  const headers = { accept: "application/json, text/plain" };
  if (method !== "GET") headers["x-csrf-token"] = csrf;
  if (body !== undefined) headers["content-type"] = file === null ? "application/json" : fileType(file);
  /** @type {Response} */
  let answer;
  try {
    // eslint-disable-next-line no-restricted-globals -- the browser's own client, used in this one place
    answer = await fetch(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: file ?? JSON.stringify(body) }),
      credentials: "same-origin",
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs ?? (file === null ? TIMEOUT_MS : UPLOAD_TIMEOUT_MS)),
    });
  } catch {
    throw new ApiError(0, { code: "unreachable", error: "The service does not respond." });
  }
  const text = await answer.text();
  if (answer.ok) return text;
  throw new ApiError(answer.status, {
    code: "unknown",
    error: `The service responded with status ${answer.status}.`,
    ...parse(text),
  });
};

/** @param {Blob} file */
const fileType = ({ type }) => (type === "" ? "application/octet-stream" : type);

/** @param {string} text @returns {any} null if it is not JSON */
const parse = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/** @param {string} path @returns {Promise<any>} */
export const getJson = async (path) => parse(await call("GET", path));
/** @param {string} path */
export const getText = (path) => call("GET", path);
/** @param {string} path @param {unknown} [body] @param {number} [timeoutMs] @returns {Promise<any>} */
export const post = async (path, body = {}, timeoutMs) =>
  parse(await call("POST", path, { body, timeoutMs }));

/** @param {string} path @param {Blob} file @returns {Promise<any>} */
export const upload = async (path, file) => parse(await call("POST", path, { body: file }));

/** @param {string} path @param {unknown} body @param {number} [timeoutMs] @returns {Promise<any>} */
export const put = async (path, body, timeoutMs) => parse(await call("PUT", path, { body, timeoutMs }));

/** @param {string} path @param {unknown} body @returns {Promise<any>} */
export const patch = async (path, body) => parse(await call("PATCH", path, { body }));

/** @param {string} path */
export const remove = async (path) => {
  await call("DELETE", path);
};

/** The page size on the screen, and the largest page that the service returns (api.md 1 "Lists"). */
const PAGE = 50;
const LIMIT = 200;

/**
 * Reads a list from its newest entry on.
 *
 * @param {string} path may have a query
 * @param {string} plural name of the list in the answer
 * @param {number} pages how many pages to read
 * @returns {Promise<{items: any[], more: boolean}>}
 */
export const getList = async (path, plural, pages) => {
  const wanted = pages * PAGE;
  /** @type {any[]} */
  const items = [];
  /** @type {string | null} */
  let cursor = null;
  do {
    const query = new URLSearchParams({ limit: String(Math.min(LIMIT, wanted - items.length)) });
    if (cursor !== null) query.set("cursor", cursor);
    // eslint-disable-next-line no-await-in-loop -- each answer names the next
    const answer = await getJson(`${path}${path.includes("?") ? "&" : "?"}${query}`);
    items.push(...answer[plural]);
    cursor = answer.next_cursor;
  } while (cursor !== null && items.length < wanted);
  return { items, more: cursor !== null };
};

/**
 * @param {string} path
 * @param {number[]} absent statuses that mean that this reader gets nothing
 * @returns {Promise<any>} null for these statuses
 */
export const getJsonOrNull = (path, absent = [404]) =>
  getJson(path).catch((error) => {
    if (error instanceof ApiError && absent.includes(error.status)) return null;
    throw error;
  });

/** Resumes the cookie's session. Throws an ApiError with status 401 without one. */
export const resume = async () => {
  csrf = (await getJson("/dashboard/session")).csrf;
};

/** @param {string} token a personal access token */
export const signIn = async (token) => {
  csrf = (await post("/dashboard/session", { token })).csrf;
};

/**
 * Accepts an invitation. The answer signs the new person in.
 *
 * @param {string} code
 * @param {string} name
 * @returns {Promise<string>} her first token
 */
export const join = async (code, name) => {
  const answer = await post("/dashboard/invitations/accept", { code, name });
  csrf = answer.csrf;
  return answer.token;
};

export const signOut = async () => {
  await call("DELETE", "/dashboard/session");
  csrf = "";
};
