// Every word the page shows, in both languages. Only answers and titles come from the server.

const WORDS = {
  zh: {
    product: "Business Assistant",
    skip: "跳到输入框", shelf: "对话列表", newThread: "新对话", untitled: "未命名的对话", none: "还没有对话",
    noneArchived: "没有已归档的对话",
    days: { today: "今天", yesterday: "昨天", before: "更早" }, active: "对话", archivedOnes: "已归档", more: "更多", openShelf: "打开对话列表",
    close: "关闭", actions: "对话操作", rename: "重命名", archive: "归档", restore: "取消归档",
    exportMarkdown: "导出为 Markdown", exportJson: "导出为 JSON", remove: "删除",
    newTitle: "对话名称", save: "保存", keep: "取消",
    confirmRemove: "删除这个对话？", removeDetail: "对话立即消失，正在进行的回答会被终止。此操作无法撤销。",
    removed: "对话已删除", archived: "已归档；再次提问会自动取消归档", restored: "已取消归档", renamed: "已重命名",
    exported: "已导出", forked: "已另开对话，从所选步骤继续",
    language: "语言", theme: "外观", auto: "跟随系统", light: "浅色", dark: "深色",
    signIn: "登录", signOut: "退出登录", signInTitle: "需要登录",
    signInDetail: "请粘贴您的访问令牌。它只保存在这个标签页里，关闭后即清除。", token: "访问令牌",
    message: "输入问题", placeholder: "问企业指标或政策", send: "发送", stop: "停止",
    hint: "Enter 发送，Shift + Enter 换行",
    tooLong: (length) => `共 ${length} 个字符，最多 4000 个，请缩短后再发送。`,
    emptyTitle: "想了解什么？",
    empty: "企业指标由系统查表给出，政策问题引用原文并标明出处。",
    sample: "当前使用样例知识：城市、企业和数据均为虚构。",
    examples: ["云帆科技2023年的营业收入是多少？", "一次性创业补贴有多少钱？", "比较云帆科技和青石材料2024年的净利润"],
    log: "对话内容", you: "您", assistant: "助手", earlier: "更早的消息", newest: "回到最新",
    retry: "重试", discard: "放弃这一问", resend: "重新发送", rejoin: "立即重连", look: "查看正在进行的回答",
    next: "下一页", previous: "上一页", cancel: "取消",
    page: (page, pages) => `第 ${page} 页，共 ${pages} 页`,
    options: (count) => `有 ${count} 个选项`,
    sources: (count) => `依据 ${count} 处`,
    openSource: (label, title) => `打开依据 ${label}：${title}`,
    version: (version) => `版本 ${version}`,
    standing: { superseded: "非现行版本", changed: "原文已变更" },
    standingNote: {
      superseded: "回答引用的版本不再现行，请以现行版本为准。", changed: "文档在回答之后有改动，以下是回答当时引用的原文。",
    },
    gone: "资料已撤回或无权查看", withdrawn: "这条回答引用的资料现已不可查看，回答不再显示。",
    copy: "复制", copied: "已复制", helpful: "有帮助", unhelpful: "没帮助",
    comment: "哪里不对？（选填）", sendComment: "提交", thanks: "谢谢反馈",
    sending: "正在发送", understoodAs: (question) => `按此问题回答：${question}`,
    historyShaped: "问题由上文推定，未经您确认", degraded: "部分步骤以简化方式完成",
    endings: {
      completed: "回答完毕", needs_input: "请选择或补充", failed: "未能处理", stopped: "已停止", incomplete: "处理中断",
    },
    failed: "处理失败，可以重试，或放弃这一问。", stopped: "已停止，以上内容不完整", stoppedEmpty: "已停止",
    incomplete: "处理中断，可以重试，或放弃这一问。", unfinished: "上一个问题还没有处理完。可以重试，或放弃这一问。",
    unanswered: "这一问没有得到回答。",
    lost: "连接已断开，正在重连", lostForNow: "连接不上服务。恢复后会自动继续，已提交的问题不会重复处理。",
    offline: "网络已断开", again: "已重新连接", stopping: "正在停止",
    runningElsewhere: "正在回答，内容会显示在这里",
    stages: {
      gate: "理解请求", intent: "分析问题", clarify: "核对信息", suggest: "整理可能的问题", retrieve: "查找依据",
      answer: "组织回答",
    },
    commands: { retry: "重试", discard: "放弃这一问", next: "下一页", previous: "上一页", cancel: "取消" },
    panel: "步骤", openPanel: "查看步骤", closePanel: "关闭步骤",
    panelIntro: "历史只影响回答的措辞，不影响问题的含义、权限、检索和依据。",
    threadId: "对话标识", seesNow: "下一轮模型能看到的历史", turnsTitle: "各轮步骤", noSteps: "还没有步骤。", open: "未完成",
    expired: "上下文已过期，只保留对话记录；追问时请把问题说完整。",
    sees: (turns, bytes) => (turns ? `${turns} 轮，${bytes} 字节` : "没有历史"),
    omitted: (turns) => `省略了 ${turns} 轮`, cut: (bytes) => `截去 ${bytes} 字节`,
    reasons: {
      over_turn_limit: "超过轮数上限", over_byte_limit: "超过字节上限", over_token_budget: "超过模型的篇幅",
      newest_cut: "最近一轮过长被截断", source_not_visible: "有来源现已不可查看", unreadable: "历史无法读取",
      answer_without_question: "缺少对应的问题",
    },
    seen: "模型看到的历史", notSeen: "这一轮没有用到历史", showSeen: "显示历史内容",
    digest: "决策摘要", digestNote: "同样的问题、权限和知识得到同样的摘要，与历史无关",
    steps: "步骤", fork: "从这里另开对话", forkShort: "分支", took: (milliseconds) => `${milliseconds} 毫秒`,
    inputKinds: {
      new_question: "新问题", clarification_reply: "对追问的回复", retry: "重试", unfinished_turn_input: "未完成时的输入",
      unknown: "未知",
    },
    answerKinds: {
      fact: "指标", comparison: "比较", narrative: "政策原文", not_found: "未找到", small_talk: "寒暄",
      out_of_scope: "超出范围", refused: "拒绝", cancelled: "已取消", discarded: "已放弃", stopped: "已停止",
    },
    problems: {
      unauthorized: "需要登录，或登录已失效。", insufficient_scope: "您的令牌没有这项权限。", forbidden: "只接受来自本机的访问。",
      not_found: "没有这个对话，或它已被删除。", thread_busy: "这个对话正在回答另一个问题，请等它结束或先停止它。",
      pool_full: "现在提问的人较多，请稍后再试。", caller_limit: "您同时进行的提问太多，请等其中一个结束。",
      too_many_connections: "现在连接太多，请稍后再试。",
      store_unavailable: "对话存储暂时连不上，请稍后再试。", database_unavailable: "对话数据库暂时连不上，请稍后再试。",
      database_read_only: "对话数据库暂时不可写，请稍后再试。", database_full: "对话数据库空间已满，请联系管理员。",
      database_of_another_release: "对话数据库与服务的版本不一致，请联系管理员。",
      sign_in_unavailable: "登录服务暂时不可用，请稍后再试。", shutting_down: "服务正在重启，请稍后再试。",
      invalid_text: "内容需为 1 到 4000 个字符。", body_too_large: "内容太长。", message_id_reused: "这条消息已经发送过，请重新输入。",
      run_vanished: "处理这个问题的进程已不在，请重新发送。", lease_lost: "对话在处理中被删除或接管。",
      name_taken: "已有同名的对话。", internal_error: "服务出现意外错误。", processing_failed: "处理失败。",
      unfinished_turn: "上一个问题还没有处理完，请先重试或放弃。", body_timeout: "网络太慢，内容没有传完，请再试一次。",
    },
    problem: "请求没有成功。", wait: (seconds) => `请在 ${seconds} 秒后再试。`, requestId: "请求编号",
  },
  en: {
    product: "Business Assistant",
    skip: "Skip to the question box", shelf: "Conversations", newThread: "New conversation",
    untitled: "Untitled conversation", none: "No conversations yet", noneArchived: "Nothing archived",
    days: { today: "Today", yesterday: "Yesterday", before: "Earlier" },
    active: "Current", archivedOnes: "Archived", more: "More", openShelf: "Open the list of conversations",
    close: "Close", actions: "Conversation actions", rename: "Rename", archive: "Archive", restore: "Unarchive",
    exportMarkdown: "Export as Markdown", exportJson: "Export as JSON", remove: "Delete",
    newTitle: "Name of the conversation", save: "Save", keep: "Cancel",
    confirmRemove: "Delete this conversation?",
    removeDetail: "It disappears at once, and an answer in progress is ended. This cannot be undone.",
    removed: "Conversation deleted", archived: "Archived. A new question brings it back.", restored: "Unarchived",
    renamed: "Renamed", exported: "Exported", forked: "A new conversation goes on from that step",
    language: "Language", theme: "Appearance", auto: "System", light: "Light", dark: "Dark",
    signIn: "Sign in", signOut: "Sign out", signInTitle: "Please sign in",
    signInDetail: "Paste your access token. It is kept in this tab alone and gone when you close it.",
    token: "Access token",
    message: "Your question", placeholder: "Ask about figures or policies", send: "Send", stop: "Stop",
    hint: "Enter sends, Shift + Enter starts a new line",
    tooLong: (length) => `This has ${length} characters; shorten it to 4,000 at most.`,
    emptyTitle: "What would you like to know?",
    empty: "Company figures are looked up, and policy answers quote their documents.",
    sample: "This is sample knowledge: the city, the companies and the figures are invented.",
    examples: [
      "What was Yunfan Technology's revenue in 2023?", "How much rent support does a regional headquarters get?",
      "Compare the net profit of Yunfan Technology and Qingshi Materials in 2024",
    ],
    log: "Conversation", you: "You", assistant: "Assistant", earlier: "Earlier messages", newest: "Go to the newest",
    retry: "Retry", discard: "Discard this question", resend: "Send again", rejoin: "Reconnect now",
    look: "Show the answer in progress",
    next: "Next", previous: "Previous", cancel: "Cancel",
    page: (page, pages) => `Page ${page} of ${pages}`,
    options: (count) => `${count} options`,
    sources: (count) => (count === 1 ? "1 source" : `${count} sources`),
    openSource: (label, title) => `Open source ${label}: ${title}`,
    version: (version) => `version ${version}`,
    standing: { superseded: "Not in force", changed: "Changed since" },
    standingNote: {
      superseded: "The version that was quoted is no longer in force. Look for the current one.",
      changed: "The document has changed since this answer. Below is the text as it was quoted.",
    },
    gone: "Withdrawn, or not yours to see",
    withdrawn: "The sources of this answer are no longer available, so it is not shown any more.",
    copy: "Copy", copied: "Copied", helpful: "Helpful", unhelpful: "Not helpful",
    comment: "What is wrong? (optional)", sendComment: "Send", thanks: "Thank you",
    sending: "Sending", understoodAs: (question) => `Answered as: ${question}`,
    historyShaped: "The question was inferred from earlier turns; you did not confirm it",
    degraded: "Some steps were done in a simpler way",
    endings: {
      completed: "Answer complete", needs_input: "Please choose or add what is missing", failed: "Not processed",
      stopped: "Stopped", incomplete: "Cut short",
    },
    failed: "This could not be processed. Retry it or discard it.", stopped: "Stopped; the answer above is incomplete",
    stoppedEmpty: "Stopped", incomplete: "This was cut short. Retry it or discard it.",
    unfinished: "The last question is unfinished. Retry it or discard it.", unanswered: "This question got no answer.",
    lost: "The connection was lost; reconnecting",
    lostForNow: "The service cannot be reached. This goes on by itself; nothing you sent is processed twice.",
    offline: "You are offline", again: "Connected again", stopping: "Stopping",
    runningElsewhere: "An answer is on its way; it will appear here",
    stages: {
      gate: "Reading the request", intent: "Analysing the question", clarify: "Checking details",
      suggest: "Wording possible questions", retrieve: "Looking for evidence", answer: "Writing the answer",
    },
    commands: { retry: "Retry", discard: "Discard", next: "Next page", previous: "Previous page", cancel: "Cancel" },
    panel: "Steps", openPanel: "Show the steps", closePanel: "Close the steps",
    panelIntro: "History may shape the words of an answer. It never shapes what a question means, whether it is "
      + "allowed, what is retrieved, or what counts as evidence.",
    threadId: "Conversation id", seesNow: "What a model would see next", turnsTitle: "Turn by turn",
    noSteps: "No steps yet.", open: "unfinished", expired: "The context has expired and only the record is kept: please ask follow-ups in full.",
    sees: (turns, bytes) => (turns ? `${turns} ${turns === 1 ? "turn" : "turns"}, ${bytes} bytes` : "No history"),
    omitted: (turns) => `${turns} left out`, cut: (bytes) => `${bytes} bytes cut`,
    reasons: {
      over_turn_limit: "over the limit of turns", over_byte_limit: "over the limit of bytes",
      over_token_budget: "over what fits the model", newest_cut: "the newest turn was too long",
      source_not_visible: "a source can no longer be seen", unreadable: "the history cannot be read",
      answer_without_question: "its question is missing",
    },
    seen: "What the model saw", notSeen: "This turn used no history", showSeen: "Show it",
    digest: "Decision digest", digestNote: "Equal for the same question, permissions and knowledge, whatever the history",
    steps: "Steps", fork: "Go on from here in a new conversation", forkShort: "Fork",
    took: (milliseconds) => `${milliseconds} ms`,
    inputKinds: {
      new_question: "new question", clarification_reply: "reply", retry: "retry",
      unfinished_turn_input: "input while unfinished", unknown: "unknown",
    },
    answerKinds: {
      fact: "figure", comparison: "comparison", narrative: "from documents", not_found: "not found",
      small_talk: "small talk", out_of_scope: "out of scope", refused: "refused", cancelled: "cancelled",
      discarded: "discarded", stopped: "stopped",
    },
    problems: {
      unauthorized: "Please sign in; the token is missing or no longer valid.",
      insufficient_scope: "Your token does not allow this.", forbidden: "Only this machine itself is served.",
      not_found: "There is no such conversation, or it was deleted.",
      thread_busy: "This conversation is answering another question. Wait for it, or stop it.",
      pool_full: "Many people are asking at the moment. Please try again shortly.",
      caller_limit: "You have too many questions in progress. Wait for one to end.",
      too_many_connections: "There are too many connections at the moment. Please try again shortly.",
      store_unavailable: "The conversation store cannot be reached. Please try again shortly.",
      database_unavailable: "The conversation database cannot be reached. Please try again shortly.",
      database_read_only: "The conversation database cannot be written now. Please try again later.",
      database_full: "The conversation database is full. Please tell its administrator.",
      database_of_another_release: "The conversation database is of another release. Please tell its administrator.",
      sign_in_unavailable: "Signing in is not possible right now. Please try again shortly.",
      shutting_down: "The service is restarting. Please try again shortly.",
      invalid_text: "A message has 1 to 4,000 characters.", body_too_large: "This is too long.",
      message_id_reused: "This message was sent before. Please type it again.",
      run_vanished: "The process that worked on this is gone. Please send it again.",
      lease_lost: "The conversation was deleted or taken over meanwhile.",
      name_taken: "There is a conversation of this name.", internal_error: "Something unexpected went wrong.",
      processing_failed: "This could not be processed.",
      unfinished_turn: "The last question is unfinished. Retry it or discard it first.",
      body_timeout: "The network was too slow. Please try again.",
    },
    problem: "The request did not succeed.", wait: (seconds) => `Please try again in ${seconds} s.`,
    requestId: "Request",
  },
};

// What paging and cancel buttons send.
export const COMMANDS = {
  zh: { next: "下一页", previous: "上一页", cancel: "取消" },
  en: { next: "next", previous: "previous", cancel: "cancel" },
};

const COMMAND_NAMES = new Map([
  ["/retry", "retry"], ["重试", "retry"], ["/discard", "discard"], ["放弃", "discard"],
  ...Object.values(COMMANDS).flatMap((said) => Object.entries(said).map(([name, text]) => [text, name])),
]);

export let words = WORDS.zh;
export let language = "zh";

export function preferredLanguage() {
  const kept = localStorage.getItem("language");
  if (kept in WORDS) return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export function chooseLanguage(chosen) {
  language = chosen;
  words = WORDS[chosen];
  localStorage.setItem("language", chosen);
  document.documentElement.lang = chosen === "zh" ? "zh-CN" : "en";
  for (const each of document.querySelectorAll("[data-word]")) each.textContent = words[each.dataset.word];
  for (const each of document.querySelectorAll("[data-label]")) {
    each.setAttribute("aria-label", words[each.dataset.label]);
    if (each.localName === "button") each.title = words[each.dataset.label];
  }
  for (const each of document.querySelectorAll("[data-hint]")) each.placeholder = words[each.dataset.hint];
}

// A reply as a person reads it: a command by its name, anything else as typed.
export function said(text) {
  const name = COMMAND_NAMES.get(text.trim());
  return name ? words.commands[name] : text;
}

// Why a call did not succeed, as server.js throws it.
export function failureText(error) {
  return "status" in error ? problemText(error) : words.lostForNow;
}

export function problemText(problem) {
  const text = words.problems[problem.code] || (language === "en" && problem.message) || words.problem;
  return problem.retryAfter ? `${text} ${words.wait(problem.retryAfter)}` : text;
}
