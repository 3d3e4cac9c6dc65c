// A kernel that ptxas cannot keep in registers is a failure that names kernel, lines and a command that reproduces it.
// RUN: mkdir -p %t.tmp && env TMPDIR=%t.tmp not gdn-opt %s --emit=cubin -o %t.cubin 2> %t.log
// RUN: FileCheck %s < %t.log
// RUN: not ls %t.cubin
// CHECK: spill.mlir: error: kernel 'spill_sm_90a': expected no spills and no stack frame, got {{[0-9]+}} and {{[0-9]+}} bytes [spill.mlir:
// CHECK: spill.mlir: note: reproduce with: {{.*}}ptxas --gpu-name=sm_90a --opt-level=3 --verbose {{.*}}gdnc-spill_sm_90a-{{[0-9a-f]+}}.ptx
// The command runs as it is printed.
// RUN: sed -n 's/.*reproduce with: //p' %t.log > %t.sh
// RUN: cd %t.tmp && sh %t.sh 2>&1 | FileCheck --check-prefix=AGAIN %s
// AGAIN: bytes spill stores
sm.kernel @spill(%p: i64) attributes {threads = 1024 : i64, shared_bytes = 0 : i64, params = [{kind = "pointer", name = "p"}]} {
  %true = arith.constant true
  %step = arith.constant 8 : i64
  %p0 = arith.addi %p, %step : i64
  %l0 = sm.load_global %p0 if %true : i64
  %p1 = arith.addi %p0, %step : i64
  %l1 = sm.load_global %p1 if %true : i64
  %p2 = arith.addi %p1, %step : i64
  %l2 = sm.load_global %p2 if %true : i64
  %p3 = arith.addi %p2, %step : i64
  %l3 = sm.load_global %p3 if %true : i64
  %p4 = arith.addi %p3, %step : i64
  %l4 = sm.load_global %p4 if %true : i64
  %p5 = arith.addi %p4, %step : i64
  %l5 = sm.load_global %p5 if %true : i64
  %p6 = arith.addi %p5, %step : i64
  %l6 = sm.load_global %p6 if %true : i64
  %p7 = arith.addi %p6, %step : i64
  %l7 = sm.load_global %p7 if %true : i64
  %p8 = arith.addi %p7, %step : i64
  %l8 = sm.load_global %p8 if %true : i64
  %p9 = arith.addi %p8, %step : i64
  %l9 = sm.load_global %p9 if %true : i64
  %p10 = arith.addi %p9, %step : i64
  %l10 = sm.load_global %p10 if %true : i64
  %p11 = arith.addi %p10, %step : i64
  %l11 = sm.load_global %p11 if %true : i64
  %p12 = arith.addi %p11, %step : i64
  %l12 = sm.load_global %p12 if %true : i64
  %p13 = arith.addi %p12, %step : i64
  %l13 = sm.load_global %p13 if %true : i64
  %p14 = arith.addi %p13, %step : i64
  %l14 = sm.load_global %p14 if %true : i64
  %p15 = arith.addi %p14, %step : i64
  %l15 = sm.load_global %p15 if %true : i64
  %p16 = arith.addi %p15, %step : i64
  %l16 = sm.load_global %p16 if %true : i64
  %p17 = arith.addi %p16, %step : i64
  %l17 = sm.load_global %p17 if %true : i64
  %p18 = arith.addi %p17, %step : i64
  %l18 = sm.load_global %p18 if %true : i64
  %p19 = arith.addi %p18, %step : i64
  %l19 = sm.load_global %p19 if %true : i64
  %p20 = arith.addi %p19, %step : i64
  %l20 = sm.load_global %p20 if %true : i64
  %p21 = arith.addi %p20, %step : i64
  %l21 = sm.load_global %p21 if %true : i64
  %p22 = arith.addi %p21, %step : i64
  %l22 = sm.load_global %p22 if %true : i64
  %p23 = arith.addi %p22, %step : i64
  %l23 = sm.load_global %p23 if %true : i64
  %p24 = arith.addi %p23, %step : i64
  %l24 = sm.load_global %p24 if %true : i64
  %p25 = arith.addi %p24, %step : i64
  %l25 = sm.load_global %p25 if %true : i64
  %p26 = arith.addi %p25, %step : i64
  %l26 = sm.load_global %p26 if %true : i64
  %p27 = arith.addi %p26, %step : i64
  %l27 = sm.load_global %p27 if %true : i64
  %p28 = arith.addi %p27, %step : i64
  %l28 = sm.load_global %p28 if %true : i64
  %p29 = arith.addi %p28, %step : i64
  %l29 = sm.load_global %p29 if %true : i64
  %p30 = arith.addi %p29, %step : i64
  %l30 = sm.load_global %p30 if %true : i64
  %p31 = arith.addi %p30, %step : i64
  %l31 = sm.load_global %p31 if %true : i64
  %p32 = arith.addi %p31, %step : i64
  %l32 = sm.load_global %p32 if %true : i64
  %p33 = arith.addi %p32, %step : i64
  %l33 = sm.load_global %p33 if %true : i64
  %p34 = arith.addi %p33, %step : i64
  %l34 = sm.load_global %p34 if %true : i64
  %p35 = arith.addi %p34, %step : i64
  %l35 = sm.load_global %p35 if %true : i64
  %p36 = arith.addi %p35, %step : i64
  %l36 = sm.load_global %p36 if %true : i64
  %p37 = arith.addi %p36, %step : i64
  %l37 = sm.load_global %p37 if %true : i64
  %p38 = arith.addi %p37, %step : i64
  %l38 = sm.load_global %p38 if %true : i64
  %p39 = arith.addi %p38, %step : i64
  %l39 = sm.load_global %p39 if %true : i64
  %p40 = arith.addi %p39, %step : i64
  %l40 = sm.load_global %p40 if %true : i64
  %p41 = arith.addi %p40, %step : i64
  %l41 = sm.load_global %p41 if %true : i64
  %p42 = arith.addi %p41, %step : i64
  %l42 = sm.load_global %p42 if %true : i64
  %p43 = arith.addi %p42, %step : i64
  %l43 = sm.load_global %p43 if %true : i64
  %p44 = arith.addi %p43, %step : i64
  %l44 = sm.load_global %p44 if %true : i64
  %p45 = arith.addi %p44, %step : i64
  %l45 = sm.load_global %p45 if %true : i64
  %p46 = arith.addi %p45, %step : i64
  %l46 = sm.load_global %p46 if %true : i64
  %p47 = arith.addi %p46, %step : i64
  %l47 = sm.load_global %p47 if %true : i64
  %p48 = arith.addi %p47, %step : i64
  %l48 = sm.load_global %p48 if %true : i64
  %p49 = arith.addi %p48, %step : i64
  %l49 = sm.load_global %p49 if %true : i64
  %p50 = arith.addi %p49, %step : i64
  %l50 = sm.load_global %p50 if %true : i64
  %p51 = arith.addi %p50, %step : i64
  %l51 = sm.load_global %p51 if %true : i64
  %p52 = arith.addi %p51, %step : i64
  %l52 = sm.load_global %p52 if %true : i64
  %p53 = arith.addi %p52, %step : i64
  %l53 = sm.load_global %p53 if %true : i64
  %p54 = arith.addi %p53, %step : i64
  %l54 = sm.load_global %p54 if %true : i64
  %p55 = arith.addi %p54, %step : i64
  %l55 = sm.load_global %p55 if %true : i64
  %p56 = arith.addi %p55, %step : i64
  %l56 = sm.load_global %p56 if %true : i64
  %p57 = arith.addi %p56, %step : i64
  %l57 = sm.load_global %p57 if %true : i64
  %p58 = arith.addi %p57, %step : i64
  %l58 = sm.load_global %p58 if %true : i64
  %p59 = arith.addi %p58, %step : i64
  %l59 = sm.load_global %p59 if %true : i64
  %p60 = arith.addi %p59, %step : i64
  %l60 = sm.load_global %p60 if %true : i64
  %p61 = arith.addi %p60, %step : i64
  %l61 = sm.load_global %p61 if %true : i64
  %p62 = arith.addi %p61, %step : i64
  %l62 = sm.load_global %p62 if %true : i64
  %p63 = arith.addi %p62, %step : i64
  %l63 = sm.load_global %p63 if %true : i64
  %p64 = arith.addi %p63, %step : i64
  %l64 = sm.load_global %p64 if %true : i64
  %p65 = arith.addi %p64, %step : i64
  %l65 = sm.load_global %p65 if %true : i64
  %p66 = arith.addi %p65, %step : i64
  %l66 = sm.load_global %p66 if %true : i64
  %p67 = arith.addi %p66, %step : i64
  %l67 = sm.load_global %p67 if %true : i64
  %p68 = arith.addi %p67, %step : i64
  %l68 = sm.load_global %p68 if %true : i64
  %p69 = arith.addi %p68, %step : i64
  %l69 = sm.load_global %p69 if %true : i64
  %p70 = arith.addi %p69, %step : i64
  %l70 = sm.load_global %p70 if %true : i64
  %p71 = arith.addi %p70, %step : i64
  %l71 = sm.load_global %p71 if %true : i64
  %p72 = arith.addi %p71, %step : i64
  %l72 = sm.load_global %p72 if %true : i64
  %p73 = arith.addi %p72, %step : i64
  %l73 = sm.load_global %p73 if %true : i64
  %p74 = arith.addi %p73, %step : i64
  %l74 = sm.load_global %p74 if %true : i64
  %p75 = arith.addi %p74, %step : i64
  %l75 = sm.load_global %p75 if %true : i64
  %p76 = arith.addi %p75, %step : i64
  %l76 = sm.load_global %p76 if %true : i64
  %p77 = arith.addi %p76, %step : i64
  %l77 = sm.load_global %p77 if %true : i64
  %p78 = arith.addi %p77, %step : i64
  %l78 = sm.load_global %p78 if %true : i64
  %p79 = arith.addi %p78, %step : i64
  %l79 = sm.load_global %p79 if %true : i64
  %p80 = arith.addi %p79, %step : i64
  %l80 = sm.load_global %p80 if %true : i64
  %p81 = arith.addi %p80, %step : i64
  %l81 = sm.load_global %p81 if %true : i64
  %p82 = arith.addi %p81, %step : i64
  %l82 = sm.load_global %p82 if %true : i64
  %p83 = arith.addi %p82, %step : i64
  %l83 = sm.load_global %p83 if %true : i64
  %p84 = arith.addi %p83, %step : i64
  %l84 = sm.load_global %p84 if %true : i64
  %p85 = arith.addi %p84, %step : i64
  %l85 = sm.load_global %p85 if %true : i64
  %p86 = arith.addi %p85, %step : i64
  %l86 = sm.load_global %p86 if %true : i64
  %p87 = arith.addi %p86, %step : i64
  %l87 = sm.load_global %p87 if %true : i64
  %p88 = arith.addi %p87, %step : i64
  %l88 = sm.load_global %p88 if %true : i64
  %p89 = arith.addi %p88, %step : i64
  %l89 = sm.load_global %p89 if %true : i64
  %p90 = arith.addi %p89, %step : i64
  %l90 = sm.load_global %p90 if %true : i64
  %p91 = arith.addi %p90, %step : i64
  %l91 = sm.load_global %p91 if %true : i64
  %p92 = arith.addi %p91, %step : i64
  %l92 = sm.load_global %p92 if %true : i64
  %p93 = arith.addi %p92, %step : i64
  %l93 = sm.load_global %p93 if %true : i64
  %p94 = arith.addi %p93, %step : i64
  %l94 = sm.load_global %p94 if %true : i64
  %p95 = arith.addi %p94, %step : i64
  %l95 = sm.load_global %p95 if %true : i64
  %p96 = arith.addi %p95, %step : i64
  sm.bar.sync 1 threads 1024
  sm.store_global %l0 to %p96 if %true : i64
  sm.store_global %l1 to %p95 if %true : i64
  sm.store_global %l2 to %p94 if %true : i64
  sm.store_global %l3 to %p93 if %true : i64
  sm.store_global %l4 to %p92 if %true : i64
  sm.store_global %l5 to %p91 if %true : i64
  sm.store_global %l6 to %p90 if %true : i64
  sm.store_global %l7 to %p89 if %true : i64
  sm.store_global %l8 to %p88 if %true : i64
  sm.store_global %l9 to %p87 if %true : i64
  sm.store_global %l10 to %p86 if %true : i64
  sm.store_global %l11 to %p85 if %true : i64
  sm.store_global %l12 to %p84 if %true : i64
  sm.store_global %l13 to %p83 if %true : i64
  sm.store_global %l14 to %p82 if %true : i64
  sm.store_global %l15 to %p81 if %true : i64
  sm.store_global %l16 to %p80 if %true : i64
  sm.store_global %l17 to %p79 if %true : i64
  sm.store_global %l18 to %p78 if %true : i64
  sm.store_global %l19 to %p77 if %true : i64
  sm.store_global %l20 to %p76 if %true : i64
  sm.store_global %l21 to %p75 if %true : i64
  sm.store_global %l22 to %p74 if %true : i64
  sm.store_global %l23 to %p73 if %true : i64
  sm.store_global %l24 to %p72 if %true : i64
  sm.store_global %l25 to %p71 if %true : i64
  sm.store_global %l26 to %p70 if %true : i64
  sm.store_global %l27 to %p69 if %true : i64
  sm.store_global %l28 to %p68 if %true : i64
  sm.store_global %l29 to %p67 if %true : i64
  sm.store_global %l30 to %p66 if %true : i64
  sm.store_global %l31 to %p65 if %true : i64
  sm.store_global %l32 to %p64 if %true : i64
  sm.store_global %l33 to %p63 if %true : i64
  sm.store_global %l34 to %p62 if %true : i64
  sm.store_global %l35 to %p61 if %true : i64
  sm.store_global %l36 to %p60 if %true : i64
  sm.store_global %l37 to %p59 if %true : i64
  sm.store_global %l38 to %p58 if %true : i64
  sm.store_global %l39 to %p57 if %true : i64
  sm.store_global %l40 to %p56 if %true : i64
  sm.store_global %l41 to %p55 if %true : i64
  sm.store_global %l42 to %p54 if %true : i64
  sm.store_global %l43 to %p53 if %true : i64
  sm.store_global %l44 to %p52 if %true : i64
  sm.store_global %l45 to %p51 if %true : i64
  sm.store_global %l46 to %p50 if %true : i64
  sm.store_global %l47 to %p49 if %true : i64
  sm.store_global %l48 to %p48 if %true : i64
  sm.store_global %l49 to %p47 if %true : i64
  sm.store_global %l50 to %p46 if %true : i64
  sm.store_global %l51 to %p45 if %true : i64
  sm.store_global %l52 to %p44 if %true : i64
  sm.store_global %l53 to %p43 if %true : i64
  sm.store_global %l54 to %p42 if %true : i64
  sm.store_global %l55 to %p41 if %true : i64
  sm.store_global %l56 to %p40 if %true : i64
  sm.store_global %l57 to %p39 if %true : i64
  sm.store_global %l58 to %p38 if %true : i64
  sm.store_global %l59 to %p37 if %true : i64
  sm.store_global %l60 to %p36 if %true : i64
  sm.store_global %l61 to %p35 if %true : i64
  sm.store_global %l62 to %p34 if %true : i64
  sm.store_global %l63 to %p33 if %true : i64
  sm.store_global %l64 to %p32 if %true : i64
  sm.store_global %l65 to %p31 if %true : i64
  sm.store_global %l66 to %p30 if %true : i64
  sm.store_global %l67 to %p29 if %true : i64
  sm.store_global %l68 to %p28 if %true : i64
  sm.store_global %l69 to %p27 if %true : i64
  sm.store_global %l70 to %p26 if %true : i64
  sm.store_global %l71 to %p25 if %true : i64
  sm.store_global %l72 to %p24 if %true : i64
  sm.store_global %l73 to %p23 if %true : i64
  sm.store_global %l74 to %p22 if %true : i64
  sm.store_global %l75 to %p21 if %true : i64
  sm.store_global %l76 to %p20 if %true : i64
  sm.store_global %l77 to %p19 if %true : i64
  sm.store_global %l78 to %p18 if %true : i64
  sm.store_global %l79 to %p17 if %true : i64
  sm.store_global %l80 to %p16 if %true : i64
  sm.store_global %l81 to %p15 if %true : i64
  sm.store_global %l82 to %p14 if %true : i64
  sm.store_global %l83 to %p13 if %true : i64
  sm.store_global %l84 to %p12 if %true : i64
  sm.store_global %l85 to %p11 if %true : i64
  sm.store_global %l86 to %p10 if %true : i64
  sm.store_global %l87 to %p9 if %true : i64
  sm.store_global %l88 to %p8 if %true : i64
  sm.store_global %l89 to %p7 if %true : i64
  sm.store_global %l90 to %p6 if %true : i64
  sm.store_global %l91 to %p5 if %true : i64
  sm.store_global %l92 to %p4 if %true : i64
  sm.store_global %l93 to %p3 if %true : i64
  sm.store_global %l94 to %p2 if %true : i64
  sm.store_global %l95 to %p1 if %true : i64
}
