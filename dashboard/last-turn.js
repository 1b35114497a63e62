/** Why a session's last turn failed, and what a reader can do about it. */
import { h } from "./dom.js";
import { callout, projectLink, prose } from "./parts.js";
import { isLive } from "./project.js";

/** @typedef {import("./wire.d.ts").Session} Session */

/** The last turn that another one has followed. The page reads a moment later how that one ended. */
let followed = "";

/** Why the last turn failed, until the next one begins. @param {Session} found @param {import("./conversation-stream.js").Reading | null} reading */
export const lastTurnView = (found, reading) => {
  const { id, status, last_turn: last, project_id: project } = found;
  if (!last?.error) return null;
  const turn = reading?.heard === true ? reading.conversation.turn : found.turn;
  if (isLive(status) && turn.state !== "idle") followed = `${id} ${last.at}`;
  return (
    followed !== `${id} ${last.at}` &&
    callout(
      last.state === "failed" ? "bad" : "warn",
      h("strong", {}, `Last turn ${last.state}: ${last.error.code}`),
      h("p", { class: "text" }, prose(last.error.message)),
      turnAdvice(project, last.error.code),
    )
  );
};

/** The remedy of a failed turn, by its code. Other codes say it themselves. @type {Record<string, [string, "" | "/secrets" | "/new"]>} */
const TURN_ADVICE = {
  no_model: ["Add the key of a model's provider, then send a message. ", "/secrets"],
  model_unauthorized: ["Replace the provider's key, then send a message. ", "/secrets"],
  model_quota: ["Check the key's quota at its provider, or use another key. ", "/secrets"],
  unknown_model: ["Choose another model for the next message.", ""],
  model_unavailable: ["Send a message to try again.", ""],
  context_exceeded: ["Start a new session from this one's branch. ", "/new"],
};

/** @param {string} projectId @param {string} error its code */
const turnAdvice = (projectId, error) => {
  const [text, rest] = TURN_ADVICE[error] ?? ["", ""];
  if (text === "") return null;
  const label = rest === "/new" ? "New session" : "Show the secrets";
  return h("p", {}, text, rest !== "" && h("a", { href: projectLink(projectId, rest) }, label));
};
