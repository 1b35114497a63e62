/** The tab of the terminal. The terminal itself is loaded when a reader opens one (terminal.ts). */
import { useLayoutEffect, useRef } from "react";
import { TERMINAL_PLACE } from "./place.ts";
import { FrameAct } from "../ui/act.tsx";
import { OpenInEditor } from "./editor.tsx";
import type { Session } from "../sessions/session.ts";

/** Opening one is a deed: whoever follows a link, or walks through the tabs, has opened none. */
export const TerminalTab = ({ session }: { readonly session: Session }) => {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => place.current?.append(TERMINAL_PLACE), []);
  const { project_id: project, id, status } = session;
  return (
    <>
      <div ref={place} className="terminal-frame" />
      <div className="terminal-offer">
        {status === "running" ? (
          <>
            <p>A terminal runs commands in the session's sandbox, beside the agent.</p>
            <p className="actions">
              <FrameAct name="open-terminal" input={{ project, session: id }}>
                Open a terminal
              </FrameAct>
            </p>
            <OpenInEditor session={session} />
          </>
        ) : (
          <p className="quiet">A session has terminals while it runs.</p>
        )}
      </div>
    </>
  );
};
