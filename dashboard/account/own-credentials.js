/** Another person steered a session: its person's own credentials are suspended in it, and she can give them back. */
import { h } from "../elements/dom.js";
import { button, callout, projectLink, time } from "../elements/parts.js";

/** @typedef {import("../wire.d.ts").OwnCredentials} OwnCredentials */

/**
 * @param {import("../wire.d.ts").Session} session
 * @param {OwnCredentials} own
 * @param {string | undefined} reader the id of the signed-in person
 */
export const suspendedView = (session, { connectors, suspended }, reader) =>
  suspended !== null &&
  connectors.length > 0 &&
  callout(
    "warn",
    h(
      "p",
      {},
      `${suspended.by.name} ${suspended.words} (`,
      time(suspended.at),
      `). The own credentials of the person who started this session no longer work in it: ${connectors.join(", ")}.`,
    ),
    suspended.session_id !== session.id
      ? h(
          "p",
          {},
          h(
            "a",
            { href: projectLink(session.project_id, `/sessions/${suspended.session_id}`) },
            "Show that session",
          ),
        )
      : session.created_by === reader &&
          button("give-credentials", "Give them back", {
            "data-project": session.project_id,
            "data-session": session.id,
          }),
  );
