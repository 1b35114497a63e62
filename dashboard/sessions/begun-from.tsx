/** Names the session with whose work another one began. */
import { projectLink } from "../elements/parts.ts";
import { Time } from "../ui/parts.tsx";
import { begunFrom } from "../../src/domain/session/begun.ts";
import type { Session } from "./session.ts";

/** Nothing if it began with a branch. */
export const BegunFrom = ({ session }: { readonly session: Session }) => {
  const begun = begunFrom(session);
  if (begun === null) return null;
  const { session_id: id, title, at } = begun;
  return (
    <>
      <a href={projectLink(session.project_id, `/sessions/${id}`)}>{title}</a>
      {at !== null && (
        <>
          , as it was <Time at={at} />
        </>
      )}
    </>
  );
};
