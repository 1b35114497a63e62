/**
 * Names of branches and commits as people and programs write them (api.md 6, "base_ref"; threats.md G01, G02).
 *
 * A name that passes is safe in `refs/heads/<name>`. It satisfies git's check-ref-format. In addition, git never reads
 * it as an option, a refspec, revision syntax or one of its own pseudo-refs. Invisible characters are refused, so two
 * different names never look the same. A name survives unchanged in JSON and on every server.
 */
import * as Result from "effect/Result";

/** Why a name was refused. `message` is one sentence that a person can act on. */
export interface RefFault {
  readonly code:
    | "empty"
    | "too_long"
    | "option"
    | "pseudo_ref"
    | "full_ref_path"
    | "revision_syntax"
    | "forbidden_character"
    | "invisible_character"
    | "not_normal"
    | "malformed"
    | "session_branch";
  readonly message: string;
}

/** A base_ref that may be looked up: a branch or a tag called `name`, otherwise the commit if the name is 40-hex. */
export interface BaseRef {
  readonly name: string;
  readonly commit: string | null;
}

/** The longest name in bytes: with `.lock` appended, a path component still fits every file system's 255. */
export const maxRefNameBytes = 244;

/** The first commit of every new hosted repository: no files, no parent, fixed author and date, so one id for all. */
export const initialCommit = "ca89aa538e9ff24422381b6e1b6baab587ad24b8";

const commitPattern = /^[0-9a-f]{40}$/i;
const sessionIdPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const pseudoRefPattern = /^(?:HEAD|@|[A-Z_]+_HEAD)$/;
// oxlint-disable-next-line no-control-regex -- control characters are what is being looked for
const controlPattern = /[\u0000-\u001f\u007f-\u009f]/;
/** Zero-width and bidirectional characters and unusual blanks: names that differ only in them look the same. */
const invisiblePattern = /[\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}]/u;
/** Decoders put this character in place of bytes that are not UTF-8, so the original name is lost. */
const replacement = "\ufffd";
const revisionPattern = /\.\.|@\{|[~^:?*[\\]|^\+/;

const fault = (code: RefFault["code"], message: string): Result.Result<never, RefFault> =>
  Result.fail({ code, message });

/** True for a full, 40-digit commit id in lower case. */
export const isCommitId = (text: string): boolean => /^[0-9a-f]{40}$/.test(text);

/** True for a branch whose name has the form of a session id: such branches belong to sessions. */
export const isSessionBranch = (name: string): boolean => sessionIdPattern.test(name);

/** True for text that was decoded from bytes that are not UTF-8: it is not the original name. */
export const isMangled = (name: string): boolean => name.includes(replacement);

/** The name as a server sees it whose file system ignores case and Unicode normalisation. */
export const foldedName = (name: string): string => name.normalize("NFC").toLowerCase();

const charactersFault = (text: string): RefFault | null => {
  if (controlPattern.test(text) || text.includes(" ") || !text.isWellFormed() || isMangled(text)) {
    return {
      code: "forbidden_character",
      message: "The name contains a space, a control character or invalid UTF-8.",
    };
  }
  if (invisiblePattern.test(text)) {
    return {
      code: "invisible_character",
      message: "The name contains an invisible character, such as a zero-width or direction mark.",
    };
  }
  return text === text.normalize("NFC")
    ? null
    : {
        code: "not_normal",
        message:
          "The name is not in Unicode's composed form (NFC), so other systems could store a different name.",
      };
};

/** Reads the name of a branch (or tag) without `refs/heads/`. */
export const parseBranchName = (text: string): Result.Result<string, RefFault> => {
  if (text === "") return fault("empty", "The name is empty. Give the name of a branch.");
  if (Buffer.byteLength(text) > maxRefNameBytes) {
    return fault("too_long", `The name is longer than ${maxRefNameBytes} bytes.`);
  }
  const characters = charactersFault(text);
  if (characters !== null) return Result.fail(characters);
  if (text.startsWith("-")) return fault("option", "A name must not begin with a dash.");
  if (pseudoRefPattern.test(text)) {
    return fault(
      "pseudo_ref",
      "Give a branch, a tag or a full commit id. Names such as HEAD are not accepted.",
    );
  }
  if (/^refs(?:\/|$)/i.test(text)) {
    return fault("full_ref_path", "Give the short name, without refs/heads/ or refs/tags/ before it.");
  }
  if (revisionPattern.test(text)) {
    return fault(
      "revision_syntax",
      "Give a plain name. Revision and refspec syntax (.. @{ ~ ^ : + * ? [ \\) is not accepted.",
    );
  }
  const isMalformed = text
    .split("/")
    .some((part) => part === "" || part.startsWith(".") || part.endsWith(".lock"));
  if (isMalformed || text.endsWith(".")) {
    return fault(
      "malformed",
      "The parts between slashes must not be empty, begin with a dot or end with .lock. The name must not end with a dot.",
    );
  }
  return Result.succeed(text);
};

/** Reads the name of a future default branch. Names that sessions may push to are refused. */
export const parseDefaultBranch = (text: string): Result.Result<string, RefFault> =>
  Result.flatMap(parseBranchName(text), (name) =>
    isSessionBranch(name.toLowerCase().replace(/^wip\//, ""))
      ? fault(
          "session_branch",
          "A branch whose name is a session id belongs to a session and cannot be the default branch. Choose another branch.",
        )
      : Result.succeed(name),
  );

/** Reads a base_ref from a request. A 40-hex name may still be a branch: branches and tags come first. */
export const parseBaseRef = (text: string): Result.Result<BaseRef, RefFault> =>
  Result.map(parseBranchName(text), (name) => ({
    name,
    commit: commitPattern.test(name) ? name.toLowerCase() : null,
  }));
