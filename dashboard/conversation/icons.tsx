/** Signs of a conversation. What they stand for is said beside them in words. */
import { KIND_WORDS } from "../../src/domain/conversation/tool-words.ts";
import { Icon } from "../ui/icon.tsx";
import {
  CHECK,
  COPY,
  FILE_TEXT,
  GLOBE,
  LIGHTBULB,
  MOVE_RIGHT,
  PENCIL,
  SEARCH,
  SQUARE_TERMINAL,
  TRASH,
  WRENCH,
  type IconNode,
} from "../elements/icons.ts";
import type { ToolCall } from "../wire.d.ts";

const KINDS: Readonly<Record<ToolCall["kind"], IconNode>> = {
  read: FILE_TEXT,
  edit: PENCIL,
  delete: TRASH,
  move: MOVE_RIGHT,
  search: SEARCH,
  execute: SQUARE_TERMINAL,
  think: LIGHTBULB,
  fetch: GLOBE,
  other: WRENCH,
};

const CLASS = "sign-of-kind";

/** Each has its word for readers who do not see it. */
export const KindIcon = ({ kind }: Pick<ToolCall, "kind">) => (
  <>
    <Icon icon={KINDS[kind]} className={CLASS} />
    <span className="unseen">{KIND_WORDS[kind]} </span>
  </>
);

export const CopyIcon = ({ isDone }: { readonly isDone: boolean }) => (
  <Icon icon={isDone ? CHECK : COPY} className={CLASS} />
);
