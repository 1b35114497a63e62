/** Languages that have colours, by the names of files and by the words behind the fences of Markdown. */
import type { LanguageRegistration } from "@shikijs/types";

type Grammar = () => Promise<{ readonly default: readonly LanguageRegistration[] }>;

/** Each is loaded with the first text of its language. The keys are the library's names. */
const GRAMMARS = {
  c: () => import("@shikijs/langs/c"),
  css: () => import("@shikijs/langs/css"),
  diff: () => import("@shikijs/langs/diff"),
  docker: () => import("@shikijs/langs/docker"),
  go: () => import("@shikijs/langs/go"),
  html: () => import("@shikijs/langs/html"),
  ini: () => import("@shikijs/langs/ini"),
  java: () => import("@shikijs/langs/java"),
  jsonc: () => import("@shikijs/langs/jsonc"),
  kotlin: () => import("@shikijs/langs/kotlin"),
  make: () => import("@shikijs/langs/make"),
  markdown: () => import("@shikijs/langs/markdown"),
  python: () => import("@shikijs/langs/python"),
  rust: () => import("@shikijs/langs/rust"),
  shellscript: () => import("@shikijs/langs/shellscript"),
  sql: () => import("@shikijs/langs/sql"),
  toml: () => import("@shikijs/langs/toml"),
  tsx: () => import("@shikijs/langs/tsx"),
  typescript: () => import("@shikijs/langs/typescript"),
  yaml: () => import("@shikijs/langs/yaml"),
} satisfies Readonly<Record<string, Grammar>>;

export type Language = keyof typeof GRAMMARS;

export const grammarOf = (language: Language): ReturnType<Grammar> => GRAMMARS[language]();

/** Endings of files, and words behind fences. Plain JavaScript is read as TypeScript, which has all of it. */
const WORDS: Readonly<Record<Language, string>> = {
  c: "c h",
  css: "css",
  diff: "diff patch",
  docker: "dockerfile containerfile",
  go: "go golang",
  html: "html htm svg xml",
  ini: "ini cfg conf properties",
  java: "java",
  jsonc: "json jsonc json5",
  kotlin: "kt kts",
  make: "makefile mk",
  markdown: "md",
  python: "py pyi",
  rust: "rs",
  shellscript: "sh bash zsh shell console",
  sql: "psql postgresql",
  toml: "",
  tsx: "jsx",
  typescript: "ts mts cts js mjs cjs javascript",
  yaml: "yml",
};

const LANGUAGES: ReadonlyMap<string, Language> = new Map(
  (Object.keys(GRAMMARS) as Language[]).flatMap((language) =>
    [language, ...WORDS[language].split(" ")].map((word) => [word || language, language] as const),
  ),
);

/** @param word as an author wrote it, e.g. "TypeScript". @returns null: it has no colours */
export const languageNamed = (word: string): Language | null => LANGUAGES.get(word.toLowerCase()) ?? null;

/** @param path of a file. @returns null: it has no colours */
export const languageOfFile = (path: string): Language | null => {
  const name = path.slice(path.lastIndexOf("/") + 1);
  // "Dockerfile" and "Makefile" have no ending, "Dockerfile.web" has another one.
  return languageNamed(name.slice(name.lastIndexOf(".") + 1)) ?? languageNamed(name.split(".", 1)[0] ?? "");
};
