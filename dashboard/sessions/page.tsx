/** One session: left its conversation, right its changes, files, terminal, previews, log and details. */
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { request } from "../api/client.ts";
import { activityNow } from "../conversation/foot/turn-state.ts";
import { hasSpoken } from "../conversation/reading/model.ts";
import { projectPath, sessionName } from "../projects/project.ts";
import { lackedRole, mayOpenTerminal } from "../frame/roles.ts";
import { ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { BootWait } from "./boot.tsx";
import { Changes } from "./tabs/changes.tsx";
import { Details } from "./tabs/details.tsx";
import { WorkspaceFiles } from "./tabs/files.tsx";
import { type Following, followSession } from "./following.ts";
import { SessionHead } from "./head.tsx";
import { LogView } from "./tabs/log-view.tsx";
import { Notes } from "./notes.tsx";
import { NarrowChoice, Panel, type Part } from "./panel.tsx";
import { type Tab, TABS, usePlace } from "./place.ts";
import { Preview } from "./tabs/preview.tsx";
import { isStarting, readSession, type Session, type SessionData } from "./session.ts";
import { Split } from "./split.tsx";
import { TerminalTab } from "../terminal/tab.tsx";
import { filesIn, NO_WORK } from "./work.ts";

const pathOf = ({ project_id: project, id }: Pick<Session, "project_id" | "id">): string =>
  `${projectPath(project)}/sessions/${id}`;

/** The conversation draws itself in an element of its own. While the sandbox starts, its steps stand below the first message. */
const Conversation = ({
  data: { session, sandbox },
  following,
}: {
  readonly data: SessionData;
  readonly following: Following | null;
}) => {
  const place = useRef<HTMLDivElement>(null);
  const [end, setEnd] = useState<Element | null>(null);
  // The page puts the conversation into its place after the first drawing.
  useLayoutEffect(() => setEnd(place.current?.querySelector("[role=log]") ?? null));
  return (
    <section className="conversation-section">
      <h2 className="unseen">Conversation</h2>
      <div ref={place} data-own="conversation" />
      {end !== null &&
        following !== null &&
        isStarting(session) &&
        createPortal(<BootWait session={session} sandbox={sandbox} log={following.log.now()} />, end)}
    </section>
  );
};

/** Readers who may not use a part have none. */
const tabsFor = (): readonly Tab[] =>
  TABS.filter(
    (tab) =>
      (tab !== "terminal" || mayOpenTerminal()) && (tab !== "preview" || lackedRole("open-port") === null),
  );

const FILES_LATER = "The files of the workspace are shown while the session runs.";

const contentOf = (tab: Tab, data: SessionData, following: Following): ReactNode => {
  const { session, sandbox } = data;
  const url = pathOf(session);
  switch (tab) {
    case "changes":
      return <Changes work={following.work.now()} session={session} url={url} />;
    case "files":
      return session.status === "running" ? (
        <WorkspaceFiles key={sandbox?.id} url={url} />
      ) : (
        <p className="quiet">{FILES_LATER}</p>
      );
    case "terminal":
      return <TerminalTab session={session} />;
    case "preview":
      return <Preview session={session} ports={following.ports.now()} />;
    case "log":
      return <LogView log={following.log.now()} />;
    case "details":
      return <Details data={data} following={following} />;
  }
};

const countOf = (tab: Tab, following: Following): number => {
  if (tab === "changes") return filesIn(following.work.now());
  return tab === "preview" ? following.ports.now().length : 0;
};

/** What an open page shows is seen, also what happens meanwhile. A hidden page shows nothing. */
const useSeen = ({ project_id: pid, id: sid, last_turn: last, failure, waits_for: wait }: Session): void => {
  const news = `${last?.at} ${failure?.at} ${wait?.kind}`;
  useEffect(() => {
    const see = (): void => {
      if (document.visibilityState === "hidden") return;
      // Without it, the list says that there is news.
      request("POST /v1/projects/:pid/sessions/:sid/seen", { params: { pid, sid } }).catch(() => undefined);
    };
    see();
    document.addEventListener("visibilitychange", see);
    return () => document.removeEventListener("visibilitychange", see);
  }, [pid, sid, news]);
};

/** As its conversation knows it, which hears of a turn first. */
const sessionNow = (session: Session, following: Following | null): Session => {
  if (following?.reading.heard !== true) return session;
  return { ...session, activity: activityNow(following.reading.conversation, session) };
};

interface Shown {
  readonly data: SessionData;
  readonly me: { readonly user: { readonly id: string; readonly name: string } } | null;
  readonly following: Following | null;
}

const SessionPage = ({ data, me, following }: Shown) => {
  const { session } = data;
  const root = useRef<HTMLDivElement>(null);
  // Why a session failed is mostly in its log. A reader of another tab stays there when it fails.
  const [first] = useState<Tab>(session.status === "failed" ? "log" : "changes");
  const place = usePlace(tabsFor(), first);
  useLayoutEffect(() => {
    if (root.current === null || following === null) return;
    following.drawn(root.current, data, { me: me?.user.name ?? "You", tab: place.tab });
    // The boot is shown as it happens, and its steps are in the log.
    following.log.want(place.tab === "log" || place.tab === "details" || isStarting(session));
  });
  useSeen(session);
  const parts: readonly Part[] =
    following === null
      ? []
      : tabsFor().map((tab) => ({
          tab,
          count: countOf(tab, following),
          content: contentOf(tab, data, following),
        }));
  return (
    <div ref={root} className="session-page">
      <SessionHead
        data={{ ...data, session: sessionNow(session, following) }}
        work={following?.work.now() ?? NO_WORK}
        place={place}
        // What it said in a former turn is not what it does.
        hasSpoken={following !== null && hasSpoken(following.reading.conversation)}
      />
      {place.isNarrow && <NarrowChoice parts={parts} place={place} />}
      <Split
        place={place}
        left={
          <>
            <div className="notes">
              <Notes data={data} following={following} reader={me?.user.id} />
            </div>
            <Conversation data={data} following={following} />
          </>
        }
        panel={<Panel parts={parts} place={place} />}
      />
    </div>
  );
};

export const pages = {
  session: framedPage<SessionData, Following>({
    load: readSession,
    follow: ([project = "", id = ""], frame) => followSession(pathOf({ project_id: project, id }), frame),
    title: (data, following) => {
      const session = sessionNow(data.session, following);
      const name = sessionName(session);
      const { word } = ACTIVITY_WORDS[session.activity];
      return session.activity === "needs_you" ? `${word} · ${name}` : `${name} · ${word}`;
    },
    Body: SessionPage,
  }),
};
