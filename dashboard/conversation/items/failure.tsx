/** Why a session's last turn did not end well: who or what failed, the reason, and what a person can do about it. */
import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { queries } from "../../api/queries.ts";
import { optionsQuery } from "../../home/options.ts";
import { lackedRole } from "../../frame/roles.ts";
import { isLive } from "../../projects/project.ts";
import { setFilter } from "../../ui/address.ts";
import { Callout, Prose } from "../../ui/parts.tsx";
import type { Around } from "../foot/foot.ts";
import type { Conversation } from "../reading/model.ts";
import { causeOf, isAboutKey, keeperOf } from "./causes.ts";

type LastTurn = NonNullable<Around["session"]["last_turn"]>;

/** What the buttons do. `again` sends the message once more that the agent did not finish. */
export type Does = Readonly<Record<"again" | "model", () => void>>;

/** These only show something. The others send a message. */
const SHOWS: ReadonlySet<string> = new Set(["model", "limit"]);

/** The details of the session have its limit. */
const showLimit = (): void => {
  setFilter("tab", "details");
  // The details may be open already, and scrolled.
  requestAnimationFrame(() => document.getElementById("spending")?.scrollIntoView({ block: "nearest" }));
};

/** The last turn, if it failed and no other one has followed. The page reads a moment later how that one ended. */
export const useFailure = ({ session }: Around, { turn }: Conversation): LastTurn | null => {
  /** The end of a turn that was seen after it, and the one after which another turn was seen. */
  const seen = useRef("");
  const followed = useRef("");
  const { last_turn: last } = session;
  if (last === null || last === undefined || last.error === null) return null;
  if (isLive(session.status) && turn.state !== "idle") {
    // The page may know that a turn has ended before the conversation does.
    if (seen.current === last.at) followed.current = last.at;
    return null;
  }
  seen.current = last.at;
  return followed.current === last.at ? null : last;
};

/** Who has the key that the failure is about. Null: it is about none, or that is not known (yet). */
const useKeeper = ({ last, session, model }: Failed) => {
  const isWanted = isAboutKey(last.error?.code ?? "");
  // The conversation is not within the page's own provider of queries.
  const { data } = useQuery({ ...optionsQuery(session.project_id), enabled: isWanted }, queries);
  if (!isWanted || data === undefined || data === null) return null;
  return keeperOf([model, session.agent_model, data.default_model], data);
};

interface Failed {
  readonly last: LastTurn;
  readonly session: Around["session"];
  /** The model of the turn, if it said one. */
  readonly model: string | null;
}

export const FailedTurn = ({ does, ...failed }: { readonly does: Does } & Failed) => {
  const { last, session } = failed;
  const { actor, place, remedies } = causeOf(last, {
    project: session.project_id,
    keeper: useKeeper(failed),
  });
  return (
    <Callout tone={last.state === "failed" ? "bad" : "warn"}>
      <strong>{actor}.</strong>
      <p className="text" dir="auto">
        <Prose text={last.error?.message ?? ""} />
      </p>
      {place !== null && <p>{place}</p>}
      <p className="actions">
        {remedies.map((remedy) =>
          "link" in remedy ? (
            <a key={remedy.label} className="button" href={remedy.link}>
              {remedy.label}
            </a>
          ) : (
            (SHOWS.has(remedy.does) || lackedRole("send-message") === null) && (
              <button key={remedy.label} type="button" onClick={{ ...does, limit: showLimit }[remedy.does]}>
                {remedy.label}
              </button>
            )
          ),
        )}
      </p>
    </Callout>
  );
};
