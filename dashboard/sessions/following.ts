/** What the page of a session follows beside the project's events: the conversation, the work, the log, the ports, what is saved. */
import { showConversation } from "../conversation/show.ts";
import { finishedTools } from "../conversation/reading/model.ts";
import { followSaves } from "../saved/saves.ts";
import type { Frame } from "../ui/framed-page.tsx";
import { followLog } from "./tabs/log.ts";
import { followPorts } from "./ports.ts";
import type { Tab } from "./place.ts";
import type { SessionData } from "./session.ts";
import { followWork } from "./work.ts";

export type Following = ReturnType<typeof followSession>;

/** @param path of the session in the API */
export const followSession = (path: string, { redraw, project }: Frame) => {
  const conversation = showConversation(path, redraw, project);
  const work = followWork(path, redraw);
  const ports = followPorts(path, redraw);
  const log = followLog(path, redraw);
  const saves = followSaves(path, redraw);
  return {
    /** The state of the conversation. */
    reading: conversation.reading,
    work,
    ports,
    log,
    saves,
    /** After each drawing. @param root has the conversation's place @param me the reader's name @param tab that is shown */
    drawn: (root: HTMLElement, data: SessionData, { me, tab }: { me: string; tab: Tab | null }): void => {
      const { session } = data;
      conversation.show(root, { session, me });
      work.see(data, finishedTools(conversation.reading.conversation), tab === "changes");
      saves.see(session);
      ports.see(session);
    },
    end: (): void => {
      for (const one of [conversation, work, ports, log]) one.end();
    },
  };
};
