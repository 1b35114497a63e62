/**
 * The rules of a project for the platform's own tools (manifest tables `[[executor.tools]]`).
 *
 *  U1 A rule holds for what an agent does, not for the tool by which it does it: the API refuses its token the same.
 *  U2 Only tools that change something have rules. What an agent may read, its token reads by the API, too.
 */
import * as Result from "effect/Result";
import { isRecord } from "../../ground/record.ts";
import { GUARDED_TOOLS, matchesTool, RULES_LIMIT, TOOL_PATTERN, type GuardedTool } from "./connector.ts";

const FIELDS = "Each rule is its own table [[executor.tools]] with match and policy.";

/** @returns the tools that are denied, or what is wrong with the rules. Without rules, none is denied. */
export const readOwnRules = (value: unknown): Result.Result<readonly GuardedTool[], string> => {
  if (value === undefined) return Result.succeed([]);
  if (!Array.isArray(value) || value.length > RULES_LIMIT)
    return Result.fail(`Write at most ${RULES_LIMIT} rules. ${FIELDS}`);
  const rules: { readonly match: string; readonly isDenied: boolean }[] = [];
  for (const entry of value as readonly unknown[]) {
    const { match, policy, ...others }: Readonly<Record<string, unknown>> = isRecord(entry) ? entry : {};
    if (Object.keys(others).length > 0) return Result.fail(FIELDS);
    if (policy !== "allow" && policy !== "deny")
      return Result.fail(`policy of a rule for the platform's own tools must be "allow" or "deny".`);
    if (
      typeof match !== "string" ||
      !TOOL_PATTERN.test(match) ||
      !GUARDED_TOOLS.some((tool) => matchesTool(match, tool))
    )
      return Result.fail(`match must fit one of the tools ${GUARDED_TOOLS.join(" and ")}. ${FIELDS}`);
    rules.push({ match, isDenied: policy === "deny" });
  }
  return Result.succeed(
    GUARDED_TOOLS.filter((tool) => rules.find(({ match }) => matchesTool(match, tool))?.isDenied === true),
  );
};
