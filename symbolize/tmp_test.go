package symbolize
import ("os";"testing";"fmt";"debug/elf";"context";"ccagent/eventlog";"strings";"sort")
func TestTmp(t *testing.T){
 path:=os.Getenv("P")
 f,_:=os.Open(path); st,_:=f.Stat()
 e,_:=elf.NewFile(f)
 var as []Address
 for _,s:=range e.Sections { if s.Flags&elf.SHF_EXECINSTR!=0 && s.Name==".text" { step:=uint64(16); if s.Size>1<<20 {step=64}; for a:=s.Addr;a<s.Addr+s.Size;a+=step { as=append(as,Address{Addr:a}) } } }
 bs:=map[uint32]*eventlog.Binding{}; spans:=map[uint32]*eventlog.Span{}; blocks:=map[uint32]*eventlog.Block{}; files:=map[uint32]*eventlog.File{}
 cats:=map[string]int{}; names:=map[string]int{}
 sum,err:=Run(context.Background(),Job{Modules:[]Module{{ID:1,Path:path,File:f,Size:st.Size(),ModTime:st.ModTime(),Addresses:as}},ReadSource:ReadSourceFile,EmbedSource:true}, func(ev eventlog.Event) error {
  switch x:=ev.(type){
  case *eventlog.Binding: c:=*x; bs[x.ID]=&c
  case *eventlog.Span: c:=*x; spans[x.ID]=&c
  case *eventlog.Block: c:=*x; c.Causes=append([]eventlog.Cause(nil),x.Causes...); blocks[x.ID]=&c
  case *eventlog.File: c:=*x; files[x.ID]=&c; fmt.Printf("FILE %+v\n",c)
  case *eventlog.ModuleSymbols: fmt.Printf("%+v\n",*x)
  case *eventlog.Locations: for _,l:=range x.Locations { cats[fmt.Sprint(l.Category," ",l.Quality)]++; if l.Binding!=0 {b:=bs[l.Binding]; n:=b.Module+"."+b.Name; if b.Module=="" {n=b.Name}; p:=""; if b.Parent!=0 {pp:=bs[b.Parent]; p=fmt.Sprintf(" [%s %s.%s]",b.Detail,pp.Module,pp.Name)} else if b.Detail!="" {p=" ["+b.Detail+"]"}; names[l.Category.String()+" "+n+p+"  "+b.Symbol]++ } else {names[l.Category.String()+" ???"]++} }
  }
  return nil })
 fmt.Println(sum,err); fmt.Println(cats)
 var ks []string; for k:=range names { ks=append(ks,k)}; sort.Strings(ks)
 for _,k:=range ks { if strings.Contains(k,os.Getenv("F")) {fmt.Println(names[k],k)} }
 if os.Getenv("S")!="" { for i:=1;i<=len(spans);i++ { s:=spans[uint32(i)]; n:=""; if s.Binding!=0 {n=bs[s.Binding].Module+"."+bs[s.Binding].Name}; fmt.Printf("%s:%d:%d-%d:%d %s\n",files[s.File].Path,s.Line,s.Col,s.EndLine,s.EndCol,n)} }
}
