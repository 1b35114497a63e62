/** Signs of a conversation. What they stand for is said beside them in words. */
import Check from "lucide/dist/esm/icons/check.mjs";
import Copy from "lucide/dist/esm/icons/copy.mjs";
import FileText from "lucide/dist/esm/icons/file-text.mjs";
import Globe from "lucide/dist/esm/icons/globe.mjs";
import Lightbulb from "lucide/dist/esm/icons/lightbulb.mjs";
import MoveRight from "lucide/dist/esm/icons/move-right.mjs";
import Pencil from "lucide/dist/esm/icons/pencil.mjs";
import Search from "lucide/dist/esm/icons/search.mjs";
import SquareTerminal from "lucide/dist/esm/icons/square-terminal.mjs";
import Trash from "lucide/dist/esm/icons/trash.mjs";
import Wrench from "lucide/dist/esm/icons/wrench.mjs";
import { KIND_WORDS } from "../../src/domain/conversation/tool-words.ts";
import { Icon, type IconNode } from "../ui/icon.tsx";
import type { ToolCall } from "../wire.d.ts";

const KINDS: Readonly<Record<ToolCall["kind"], IconNode>> = {
  read: FileText,
  edit: Pencil,
  delete: Trash,
  move: MoveRight,
  search: Search,
  execute: SquareTerminal,
  think: Lightbulb,
  fetch: Globe,
  other: Wrench,
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
  <Icon icon={isDone ? Check : Copy} className={CLASS} />
);
