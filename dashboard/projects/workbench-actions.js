/** Actions on secrets that sign webhooks, for frame/actions.js. */
import { put } from "../api/api.ts";
import { ask, tell } from "../frame/dialog.ts";
import { projectPath } from "./project.js";

/** @typedef {import("../frame/actions.js").Action} Action */

const DAY_MS = 24 * 3_600_000;
/** As long as the key of HMAC-SHA256 is useful. */
const SECRET_BYTES = 32;

/** @returns {string} 64 hexadecimal digits */
const newSecret = () =>
  [...crypto.getRandomValues(new Uint8Array(SECRET_BYTES))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");

/** @type {Record<string, Action>} */
export const WORKBENCH_ACTIONS = {
  /** The browser makes the value, because the service gives none away. */
  "make-webhook-secret": async ({ project = "", secret = "", rotates = "" }, page) => {
    if (rotates !== "") {
      const sure = await ask({
        title: `Make a new value of ${secret}?`,
        text: "Senders keep working with the old value for 24 hours. Give them the new one in that time.",
        confirm: "Make a new value",
      });
      if (sure === null) return;
    }
    const value = newSecret();
    await put(`${projectPath(project)}/secrets/${encodeURIComponent(secret)}`, {
      value,
      service: true,
      ...(rotates !== "" && { previous_valid_ms: DAY_MS }),
    });
    tell({
      title: `The new value of ${secret}`,
      text: "Give it to the sender now. It is not shown again.",
      secret: value,
    });
    page.refresh();
  },
};
