/** Pieces that several pages show. */
import { h } from "./dom.ts";
import { inZone } from "./format.ts";
import { ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";
import { lackedRole } from "../frame/roles.ts";
import type { Attributes, Child } from "./dom.ts";
import type { Session } from "../wire.d.ts";

/** A session's activity, in the words of all lists. */
export const sessionWord = ({ activity, archived }: Pick<Session, "activity" | "archived">) =>
  archived ? "Archived" : ACTIVITY_WORDS[activity].word;

export const code = (text: string) => h("code", {}, text);

/** A sentence of the service: the parts that it puts in backticks are shown as code, and instants in the reader's zone. */
export const prose = (text: string): Child[] =>
  text
    .split(/`([^`\n]+)`/)
    .map((part, index) => (index % 2 === 1 ? code(part) : inZone(part)))
    .filter((part) => part !== "");

/**
 * A button. The entry `action` of frame/actions.ts handles it. It has a key, so that a removed button never turns into
 * another one while the reader presses it.
 *
 * @returns null: the reader's role forbids it. The project's head says so.
 */
export const button = (action: string, label: string, attributes: Attributes = {}): HTMLElement | null =>
  lackedRole(action) === null
    ? h("button", { type: "button", "data-action": action, "data-key": action, ...attributes }, label)
    : null;

/** @param tone "bad", "warn" or "good" */
export const callout = (tone: string, ...children: readonly (Child | Child[])[]) =>
  h("div", { class: "callout", "data-tone": tone }, ...children);

export const empty = (title: string, ...explanation: readonly Child[]) =>
  h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), h("p", {}, ...explanation));

/** @param rest e.g. "/triggers" */
export const projectLink = (projectId: string, rest: string = "") => `#/projects/${projectId}${rest}`;

/** A session's page. If a search found one of its messages, it opens there. */
export const sessionLink = ({
  project_id: project,
  id,
  found,
}: Pick<Session, "project_id" | "id" | "found">) =>
  projectLink(project, `/sessions/${id}${found === undefined ? "" : `?item=${found.item_id}`}`);

/** The runs of a project's triggers, or of one of them. */
export const firesLink = (projectId: string, slug?: string) =>
  projectLink(projectId, slug === undefined ? "/fires" : `/fires?${new URLSearchParams({ slug })}`);

/** The deliveries that a project refused. */
export const refusedLink = (projectId: string) => projectLink(projectId, "/fires?status=refused");

export const fireLink = (projectId: string, id: string) => projectLink(projectId, `/fires/${id}`);
