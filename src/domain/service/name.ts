/** The name of an installation on its page. */
import * as Result from "effect/Result";

const LENGTH_MAX = 40;

export const parseInstallationName = (text: string): Result.Result<string, string> => {
  const name = text.trim();
  return name !== "" && name.length <= LENGTH_MAX && !/\p{Cc}/u.test(name)
    ? Result.succeed(name)
    : Result.fail(`a name of 1 to ${LENGTH_MAX} characters in one line`);
};
